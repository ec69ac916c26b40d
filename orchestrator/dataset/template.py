"""A model's chat template, rendered as its library renders it. The template is a stranger's: it runs in jinja's sandbox."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .faults import Fault

Render = Callable[..., str]


def compiled(template: str, special: dict[str, str]) -> Render:
    """render(messages, add_generation_prompt=…) -> text. Fault for a template that is none. ImportError without jinja2."""
    import jinja2
    import jinja2.ext
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Generation(jinja2.ext.Extension):
        """`{% generation %}…{% endgeneration %}` marks what is learned; it renders as what is in it."""

        tags = {"generation"}  # noqa: RUF012  the library's own attribute

        def parse(self, parser: Any) -> Any:
            next(parser.stream)
            return parser.parse_statements(("name:endgeneration",), drop_needle=True)

    def refuse(message: str) -> str:
        raise jinja2.TemplateError(message)

    def tojson(value: Any, ensure_ascii: bool = False, indent: int | None = None, **_: Any) -> str:
        import json

        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent)

    world = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                          extensions=[Generation, "jinja2.ext.loopcontrols"])
    world.filters["tojson"] = tojson
    world.globals.update(raise_exception=refuse, strftime_now=_today)
    try:
        made = world.from_string(template)
    except jinja2.TemplateError:
        raise Fault("the model's chat template cannot be read") from None

    def render(messages: list[dict[str, str]], add_generation_prompt: bool = False) -> str:
        try:
            return made.render(messages=messages, add_generation_prompt=add_generation_prompt, **special)
        except Exception:  # noqa: BLE001 why: a template is a program, and whatever it raises is its word about this row
            raise Fault("the model's chat template refuses it",
                        "some templates take no message of the system, or only turns that alternate") from None

    return render


def _today(format: str) -> str:
    import datetime

    return datetime.datetime.now().strftime(format)
