"""How much memory a training takes: every part by a named formula, then low, expected and high. Pure.

The formulas follow the node's trainer as it is: transformers' layers, peft's adapters, bitsandbytes' four bits, TRL's
fused head. They are held against torch's own memory profiler on small models, and against published peaks of large ones
(tests). Bytes throughout. "Saved" is what the forward pass keeps for the backward pass.

The peak is the largest of three moments: the loss, when all that was saved is there and the head works; the backward pass
of a layer; the optimizer's step.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .shapes import Linear, Shape

MIB, GIB = 2**20, 2**30
METHODS = ("lora", "qlora", "full")
TILE_TOKENS, TILE_WORDS = 4096, 32768    # of TRL's fused head (trl 1.16, kernels/chunked_logprob.py)
BLOCK, NESTED_BLOCK = 64, 256            # of NF4 and of its quantised constants (QLoRA, arXiv 2305.14314, section 3)
CONTEXT = 600 * MIB                      # CUDA context, kernels, cuBLAS workspaces; 300 to 900 by card and driver
FRAGMENTS = (0.0, 0.04, 0.12)            # of what comes and goes, lost between the allocator's blocks: low, expected, high
LEAST_ON_TOP, MOST_ON_TOP = 300 * MIB, 900 * MIB


@dataclass(frozen=True, slots=True)
class Setting:
    """What is trained and how. The defaults are the node's own."""

    method: str = "qlora"                # lora | qlora | full
    rank: int = 16
    targets: tuple[str, ...] = ("all-linear",)
    saved: tuple[str, ...] = ()          # modules_to_save: embed_tokens, lm_head
    dropout: bool = True
    batch: int = 8
    length: int = 1024                   # tokens of a row; longer ones are cut
    accumulation: int = 1
    checkpointing: bool = True           # layers keep their input only, and are computed again
    attention: str = "sdpa"              # sdpa | eager
    head: str = "fused"                  # fused: in tiles, as TRL does; full: all logits at once, as trainers did before
    double: bool = True                  # quantised constants are quantised once more
    cpu: bool = False                    # everything in 32 bits, no mixed precision
    adapter: int = 0                     # bytes of an adapter's number; 0: as the method has it
    moments: int = 0                     # bytes that the optimizer keeps of it; 0: two of its own kind

    @property
    def tokens(self) -> int:
        """In one step on the card, padding included."""
        return self.batch * self.length


@dataclass(frozen=True, slots=True)
class Need:
    """Parts in bytes by name, as they are at the peak, and their sum three ways. `moment`: which one is the largest."""

    parts: tuple[tuple[str, int], ...]
    moment: str
    low: int
    expected: int
    high: int

    def part(self, name: str) -> int:
        return dict(self.parts).get(name, 0)


def need(shape: Shape, how: Setting) -> Need:
    """The peak on one card. On a CPU what the profiler sees: no context, no fragments."""
    fixed = {"weights": weights(shape, how), "quantisation": constants(shape, how), "adapter": adapter(shape, how),
             "optimizer": optimizer(shape, how)}
    grads = gradients(shape, how)
    moments: dict[str, Mapping[str, int]] = {
        "loss": {"activations": saved(shape, how), "logits": logits(shape, how),
                 "gradients": grads if how.accumulation > 1 else 0},
        "first layer back": {"activations": saved(shape, how) + layer_back(shape, how),
                             "gradients": grads if how.accumulation > 1 else head_gradient(shape, how)},
        "last layer back": {"activations": layer_back(shape, how) + layer_kept(shape, how), "gradients": grads},
        "step": {"gradients": grads},
    }
    moment = max(moments, key=lambda name: sum(moments[name].values()))
    parts = {**fixed, "activations": 0, "logits": 0, **moments[moment]}
    return _three_ways(shape, how, parts, moment)


def _three_ways(shape: Shape, how: Setting, parts: Mapping[str, int], moment: str) -> Need:
    moving = parts["activations"] + parts["logits"] + parts["gradients"]
    bare = sum(parts.values())
    if how.cpu:
        return Need(tuple(parts.items()), moment, bare, bare, bare)
    low, lost, most = (int(moving * share) for share in FRAGMENTS)
    doubt = bare // 8 if shape.rough else 0
    whole = {**parts, "context": CONTEXT, "fragments": lost}
    return Need(tuple(whole.items()), moment, bare + LEAST_ON_TOP + low - doubt, sum(whole.values()),
                bare + MOST_ON_TOP + most + doubt)


# ---- what is there all the time ----------------------------------------------------------------------------


def number(how: Setting) -> int:
    """Bytes of a number that is computed with: 32 bits on a CPU, bfloat16 on a card."""
    return 4 if how.cpu else 2


def weights(shape: Shape, how: Setting) -> int:
    """The base model's weights; qlora packs two of a layer's linear weights into a byte and leaves the rest alone."""
    rest = shape.parameters() - shape.in_layers()
    inside = shape.in_layers() // 2 if how.method == "qlora" else shape.in_layers() * number(how)
    return inside + rest * number(how)


def constants(shape: Shape, how: Setting) -> int:
    """One per block of 64: 32 bits, or by double quantisation 8 bits and 32 more for each 256 of them (QLoRA, section 3:
    0.5 and 0.127 bits a parameter)."""
    if how.method != "qlora":
        return 0
    blocks = shape.in_layers() // BLOCK
    return blocks + blocks // NESTED_BLOCK * 4 if how.double else blocks * 4


def trained(shape: Shape, how: Setting) -> int:
    """Parameters that are trained: all, or rank × (inputs + outputs) of each target and copies of the saved modules."""
    if how.method == "full":
        return shape.parameters()
    inside = shape.layers * sum(how.rank * (w.inputs + w.outputs) for w in targeted(shape, how))
    return inside + shape.table() * len(set(how.saved) & {"embed_tokens", "lm_head"})


def targeted(shape: Shape, how: Setting) -> tuple[Linear, ...]:
    if how.method == "full" or "all-linear" in how.targets:
        return shape.linears()
    return tuple(w for w in shape.linears() if any(w.name == target.split(".")[-1] for target in how.targets))


def adapter_number(how: Setting) -> int:
    """Bytes of a trained number: peft keeps a lora's in 32 bits beside a bfloat16 base, TRL a qlora's in bfloat16."""
    return how.adapter or (2 if how.method in ("qlora", "full") and not how.cpu else 4)


def adapter(shape: Shape, how: Setting) -> int:
    """Its weights, and the bfloat16 copies that mixed precision makes of wider ones. `full` has its weights already."""
    if how.method == "full":
        return 0
    copies = 2 if not how.cpu and adapter_number(how) > 2 else 0
    return trained(shape, how) * (adapter_number(how) + copies)


def optimizer(shape: Shape, how: Setting) -> int:
    """AdamW: two moments of a parameter, of the same kind (Loshchilov and Hutter, arXiv 1711.05101; torch makes them so)."""
    return trained(shape, how) * (how.moments or 2 * adapter_number(how))


def gradients(shape: Shape, how: Setting) -> int:
    return trained(shape, how) * adapter_number(how)


# ---- what a step brings ------------------------------------------------------------------------------------


def saved(shape: Shape, how: Setting) -> int:
    """All layers' together: the input of each when checkpointing, else everything; and around the layers the table's
    output and the last norm's two."""
    inside = shape.layers * (shape.hidden * number(how) if how.checkpointing else layer_saved(shape, how))
    around = shape.hidden * (4 + 2 * number(how))
    return how.tokens * (inside + around) + mask(how)


def layer_saved(shape: Shape, how: Setting) -> int:
    """Of one layer, a token (the counting of Korthikanti et al., arXiv 2205.05198, section 4, done for gated layers with
    frozen weights: a frozen weight does not need its input, an adapter does)."""
    return norms_saved(shape, how) + attention_saved(shape, how) + mlp_saved(shape, how) + adapters_saved(shape, how)


def layer_kept(shape: Shape, how: Setting) -> int:
    """What is left of the first layer when the backward pass comes to it."""
    return how.tokens * (shape.hidden * number(how) if how.checkpointing else layer_saved(shape, how))


def norms_saved(shape: Shape, how: Setting) -> int:
    """RMSNorm computes in 32 bits and keeps its input so; a trained one keeps the normalised as well."""
    wide = shape.norms * shape.hidden + ((shape.wide + shape.narrow) if shape.head_norms else 0)
    return wide * (4 + (number(how) if how.method == "full" else 0))


def attention_saved(shape: Shape, how: Setting) -> int:
    """Queries, keys, values, output, and 32 bits a head. Padded batches widen keys and values to all heads, since a mask
    keeps grouped heads from the fast kernel; plain attention keeps its scores, too."""
    padded = how.batch > 1 and not how.cpu
    narrow = shape.wide if padded or how.attention == "eager" else shape.narrow
    scores = 0
    if how.attention == "eager":         # softmax in 32 bits, its copy, and the cap's own output
        scores = shape.heads * how.length * (4 + (number(how) if number(how) < 4 else 0) + shape.softcap * number(how))
    return (2 * shape.wide + 2 * narrow) * number(how) + 4 * shape.heads + scores


def mlp_saved(shape: Shape, how: Setting) -> int:
    """Gate, up, and the activated gate."""
    return 3 * shape.inner * number(how)


def adapters_saved(shape: Shape, how: Setting) -> int:
    """What the trained weights keep of their inputs. With dropout each has its own copy and a mask; without, those that
    read the same tensor share it, and the attention's output is kept anyway."""
    found = targeted(shape, how)
    middle = sum(how.rank for _ in found) * number(how) if how.method != "full" else 0
    if how.method != "full" and how.dropout:
        return middle + sum(w.inputs for w in found) * (number(how) + (4 if how.cpu else 1))
    read = {w.reads: w.inputs for w in found if w.reads != "attention out"}
    return middle + sum(read.values()) * number(how)


def layer_back(shape: Shape, how: Setting) -> int:
    """The backward pass of one layer: its own saved parts when they had to be computed again, gradients on their way, and
    with four bits the widest weight unpacked."""
    again = layer_saved(shape, how) if how.checkpointing else 0
    moving = 2 * shape.inner * number(how) if not how.cpu else shape.inner * number(how)
    unpacked = max(w.inputs * w.outputs for w in shape.linears()) * number(how) if how.method == "qlora" else 0
    return how.tokens * (again + moving + 3 * 4 * shape.hidden) + unpacked


def logits(shape: Shape, how: Setting) -> int:
    """The head's own. Fused: one tile of 4,096 tokens by 32,768 words, and the hidden states' gradient in 32 bits. Full:
    logits, their shifted copy, log-softmax and gradient, 32 bits each."""
    if how.head == "full":
        return how.tokens * shape.vocabulary * 16
    tokens = min(how.tokens, TILE_TOKENS)
    tile = tokens * TILE_WORDS * number(how)
    plain = tokens * min(shape.vocabulary, TILE_WORDS) * 29 if how.cpu else 0      # torch's own steps: 7.25 copies
    return tile + plain + how.tokens * shape.hidden * (4 + number(how)) + head_gradient(shape, how)


def head_gradient(shape: Shape, how: Setting) -> int:
    """Of a head that is trained, gathered in 32 bits."""
    return shape.table() * 4 if how.method == "full" or "lm_head" in how.saved else 0


def mask(how: Setting) -> int:
    """Who may look at whom, in a padded batch: a byte for each pair, and once more in the scores' kind."""
    return how.batch * how.length**2 * (1 + number(how)) if how.batch > 1 and not how.cpu else 0
