"""Fit, hours, offers and prices: the plan before any money moves."""
from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.lease import HardwareClaim, Offer, Wish
from orchestrator.domain.money import POL, USDC, Money, Rate
from orchestrator.domain.price import Price
from orchestrator.domain.training import Forecast, Pace
from orchestrator.errors import Refused
from orchestrator.planning.cards import CARDS, MEASURED, card_of
from orchestrator.planning.choose import best
from orchestrator.planning.compare import compare, elsewhere
from orchestrator.planning.fit import LONGEST, fits, largest, remedies, smallest_card, verdict
from orchestrator.planning.forecast import Planned, advice, forecast, planned
from orchestrator.planning.hours import operations, setting_of, tokens_in, training, work_of
from orchestrator.planning.memory import MIB, Setting, need
from orchestrator.planning.models import must_be_named
from orchestrator.planning.plan import AUTO_SECONDS, agreement
from orchestrator.planning.prices import PRICES, merged, usd
from orchestrator.planning.shapes import Shape

L8, L70 = must_be_named("Llama-3.1-8B"), must_be_named("Llama-3.1-70B")
MIB_4090, MIB_RTX_4000_SFF = 24564, 20475


def offer(name: str, gpu: str = "NVIDIA GeForce RTX 4090", mib: int = MIB_4090, price: str = "0.45",
          **more: object) -> Offer:
    rate = Rate(Money.parse(f"{price} USDC", USDC))
    whole = Offer("open", name, rate, HardwareClaim(gpu, 1, mib), 86_400, 100, Money(10**16, POL), 980)
    return replace(whole, **more)        # type: ignore[arg-type]


def run_of(shape: Shape = L8, rows: int = 900, paces: tuple[Pace, ...] = ()) -> Planned:
    return planned(shape, "qlora", (), rows, rows // 9, tokens_in(1400, 1), chat=True, paces=paces)


# ---- fit ---------------------------------------------------------------------------------------------------


def test_on_20_gb_the_largest_model_sequence_and_batch_come_out_and_70b_does_not() -> None:
    found = largest(MIB_RTX_4000_SFF)
    assert found and found.model == "google/gemma-2-27b" and found.length >= 1024 and found.batch >= 2
    assert verdict(need(L70, Setting("qlora", batch=1, length=128)), MIB_RTX_4000_SFF) == "does not fit"
    assert remedies(L70, Setting("qlora", batch=8), MIB_RTX_4000_SFF) == []
    eight = largest(MIB_RTX_4000_SFF, models=["meta-llama/Llama-3.1-8B"])
    assert eight and eight.length >= 8192 and eight.batch >= 8


def test_what_would_make_70b_fit_48_gb() -> None:
    how = setting_of("qlora", {}, L70)
    assert not fits(L70, how, 49140)
    ways = {r.text.split(":")[0]: r for r in remedies(L70, how, 49140)}
    assert set(ways) >= {"per_device_train_batch_size", "max_length"}
    for way in ways.values():
        assert fits(L70, way.how, 49140) and way.high == need(L70, way.how).high


def test_lora_that_does_not_fit_is_told_to_take_four_bits() -> None:
    assert "method: qlora" in [r.text for r in remedies(L8, Setting("lora", batch=8), 20475)]


def test_where_no_single_change_helps_all_of_them_are_made_together() -> None:
    way, = remedies(L8, Setting("lora", rank=256, batch=32, length=16384), 12288)
    assert way.text.startswith("method: qlora, per_device_train_batch_size: 1, lora_r: 4, max_length: ")
    assert fits(L8, way.how, 12288)


@given(st.sampled_from([8, 12, 16, 20, 24, 48, 80]), st.integers(1, 32), st.integers(1, 64),
       st.sampled_from(["lora", "qlora"]))
def test_every_remedy_fits(gib: int, batch: int, hundreds: int, method: str) -> None:
    how = Setting(method, batch=batch, length=hundreds * 128)
    for way in remedies(L8, how, gib * 1024):
        assert fits(L8, way.how, gib * 1024) and 0 < way.how.length <= LONGEST
    card = smallest_card(L8, how)
    assert card is None or fits(L8, how, card.mib)


# ---- hours -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("gpu", "mib", "name"), [
    ("NVIDIA GeForce RTX 4090", 24564, "RTX 4090"), ("NVIDIA A100-SXM4-80GB", 81920, "A100 80GB"),
    ("NVIDIA A100-PCIE-40GB", 40960, "A100 40GB"), ("NVIDIA RTX 6000 Ada Generation", 49140, "RTX 6000 Ada"),
    ("NVIDIA H100 80GB HBM3", 81559, "H100"), ("NVIDIA H100 PCIe", 81559, "H100 PCIe"),
    ("NVIDIA RTX 4000 SFF Ada Generation", 20475, "RTX 4000 SFF Ada"), ("Simulated RTX 4090", 24564, "RTX 4090"),
])
def test_a_card_is_known_by_what_its_driver_calls_it(gpu: str, mib: int, name: str) -> None:
    assert (card := card_of(gpu, mib)) and card.name == name


def test_a_card_that_nobody_knows_is_none() -> None:
    assert card_of("Quadro 40900", 24564) is None


@pytest.mark.parametrize(("gpu", "method", "tokens_a_second"), [
    ("RTX 4090", "qlora", 2330), ("RTX 3090", "qlora", 1198), ("RTX 4090", "lora", 2399), ("RTX 3090", "lora", 1190)])
def test_published_speeds_come_out(gpu: str, method: str, tokens_a_second: int) -> None:
    """fsdp_qlora, Mar 2024: 1,024 rows of 2,048 tokens on two cards in 450, 875, 437 and 881 seconds."""
    shape, how = must_be_named("Llama-2-7b-hf"), Setting(method, batch=8, length=2048)
    work = work_of(1024, 0, 10**6, {"num_train_epochs": "1"}, how)
    card = card_of(gpu)
    assert card and work.row_tokens == 2048
    said = training(shape, how, work, card)
    assert 1024 * 2048 / said.expected == pytest.approx(tokens_a_second, rel=0.15)
    assert said.low < 1024 * 2048 / tokens_a_second < said.high


def test_every_measured_card_names_its_source() -> None:
    assert all(card.source in MEASURED for card in CARDS)
    assert len({card.name for card in CARDS}) == len(CARDS)


def test_training_all_weights_costs_a_third_more_than_an_adapter() -> None:
    assert operations(L8, Setting("full")) / operations(L8, Setting("lora")) == pytest.approx(4 / 3, rel=0.001)


def test_a_thousand_examples_take_less_than_an_hour_on_a_4090() -> None:
    seen = forecast(run_of(rows=900), offer("a"))
    assert seen.seconds[0] < seen.seconds[1] < 3600 and seen.verdict == "fits"


def test_own_past_runs_correct_the_hours() -> None:
    gpu = "NVIDIA GeForce RTX 4090"
    before = forecast(run_of(rows=9000), offer("a")).job_seconds
    paces = (Pace(gpu, "qlora", 9000), *[Pace(gpu, "qlora", 2000)] * 5, Pace(gpu, "lora", 100), Pace("other", "qlora", 100))
    assert forecast(run_of(rows=9000, paces=paces), offer("a")).job_seconds == pytest.approx(2 * before, abs=1)


# ---- what is confirmed -------------------------------------------------------------------------------------


def seen(low: int, expected: int, high: int) -> Forecast:
    return Forecast("RTX 4090", MIB_4090, (9000, 10000, 11000), "fits", expected // 2, (low, expected, high))


def test_hours_auto_are_twice_the_plans_high_figure_rounded_up() -> None:
    agreed = agreement(offer("a"), None, Money.parse("8 USDC", USDC), seen(2000, 3000, 5000))
    assert agreed.seconds == 10_200 and agreed.forecast == seen(2000, 3000, 5000)


def test_hours_auto_never_pass_the_budget_and_are_two_at_least() -> None:
    assert agreement(offer("a"), None, Money.parse("0.45 USDC", USDC), seen(2000, 3000, 5000)).seconds == 3600
    assert agreement(offer("a"), None, Money.parse("8 USDC", USDC), seen(60, 90, 120)).seconds == AUTO_SECONDS
    assert agreement(offer("a"), None, None, seen(60, 90, 86_400)).seconds == 86_400


def test_hours_auto_without_a_plan_go_as_far_as_the_budget() -> None:
    assert agreement(offer("a"), None, Money.parse("0.90 USDC", USDC)).seconds == 7200


@pytest.mark.parametrize("hours", [None, 3600])
def test_a_time_that_surely_does_not_do_is_refused_with_what_would(hours: int | None) -> None:
    with pytest.raises(Refused, match="the run takes at least 2 hours") as refused:
        agreement(offer("a"), hours, Money.parse("0.50 USDC", USDC), seen(7200, 9000, 14400))
    assert "allow 4 hours, 1.80 USDC" in str(refused.value.hint)


def test_offers_whose_card_surely_does_not_do_are_refused_with_what_would_fit() -> None:
    run = run_of(L70)
    with pytest.raises(Refused, match=r"24564 MiB of GPU memory, the training takes at least \d+") as refused:
        best([offer("a")], Wish(), (), run.least_mib, advice(run, MIB_4090))
    assert "it would fit with a card like H100" in str(refused.value.hint)


def test_a_wish_that_no_offer_meets_is_told_to_be_widened_not_to_train_less() -> None:
    with pytest.raises(Refused) as refused:
        best([offer("a", "RTX 3090")], Wish(gpu=("H100",)), (), 30_000, "a card like H100")
    assert refused.value.hint == "widen `node:` in the run file"


def test_the_cheapest_that_is_large_enough_is_taken() -> None:
    large = offer("b", "NVIDIA RTX 6000 Ada Generation", 49140, "0.80")
    assert best([offer("a"), large], Wish(), (), 30_000) == large


# ---- offers side by side -----------------------------------------------------------------------------------


def test_offers_that_nobody_beats_come_first_and_every_refusal_has_its_reason() -> None:
    offers = [offer("dear", price="0.90"), offer("good", price="0.40"), offer("sure", price="0.50", reliability=999),
              offer("small", "NVIDIA GeForce RTX 3060", 1024, "0.05"), offer("short", max_seconds=600),
              offer("strange", "Quadro 9", price="0.30", reliability=None)]
    rows = {row.offer.offer_id: row for row in compare(run_of(), offers, Wish(min_reliability=900))}
    assert list(rows)[-2:] == ["small", "short"] and rows["dear"].best is False
    assert rows["good"].best and rows["sure"].best
    assert "MiB of GPU memory" in rows["small"].refused and "let for 10 minutes" in rows["short"].refused
    assert rows["strange"].cost is None and "not known here" in rows["strange"].forecast.why


@given(st.lists(st.tuples(st.integers(1, 50), st.integers(900, 999), st.sampled_from(["RTX 4090", "RTX 3090", "H100"])),
                min_size=1, max_size=8))
def test_nobody_on_the_front_is_beaten_by_anybody(drawn: list[tuple[int, int, str]]) -> None:
    offers = [offer(str(i), gpu, 30_000, str(Decimal(cents) / 10), reliability=sure)
              for i, (cents, sure, gpu) in enumerate(drawn)]
    rows = compare(run_of(), offers, Wish())
    front = [row for row in rows if row.best]
    assert front and len(rows) == len(offers)
    for row in front:
        for other in rows:
            assert row.cost and other.cost
            assert (other.cost.units, -(other.offer.reliability or 0), other.forecast.seconds[1]) >= (
                row.cost.units, -(row.offer.reliability or 0), row.forecast.seconds[1]) or not (
                other.cost.units <= row.cost.units and (other.offer.reliability or 0) >= (row.offer.reliability or 0)
                and other.forecast.seconds[1] <= row.forecast.seconds[1])


def test_elsewhere_is_priced_by_whole_machines_and_what_does_not_fit_has_no_price() -> None:
    found = {(e.price.where, e.price.card): e for e in elsewhere(run_of(), PRICES)}
    aws = found["AWS p4d.24xlarge", "A100 40GB"]
    assert aws.cost and aws.seconds and aws.cost == usd("21.957642").ahead(aws.seconds)
    assert all(e.cost is None for e in elsewhere(run_of(L70), PRICES) if e.price.card in ("A10G", "RTX 4090"))


def test_own_prices_take_the_place_of_the_tables_and_further_ones_are_added() -> None:
    mine = tuple(Price(where, card, usd(price), "2027-01-01", "settings")
                 for where, card, price in (("lambda", "h100", "9"), ("Here", "L4", "1")))
    table = merged(mine)
    assert len(table) == len(PRICES) + 1 and mine[0] in table and table[-1] == mine[1]


def test_every_price_of_the_table_names_its_day_and_a_known_card() -> None:
    assert all(len(p.date) == 10 and p.source and card_of(p.card) for p in PRICES)


def test_what_a_simulated_card_or_an_own_server_does_is_not_promised() -> None:
    assert forecast(run_of(), offer("a", simulated=True)).seconds == (0, 0, 0)
    own = forecast(run_of(), offer("a", claim=None))
    assert own.seconds == (0, 0, 0) and own.memory[1] * MIB <= need(L8, run_of().how).expected and own.why
