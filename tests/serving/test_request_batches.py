"""Sentences of many requests in batches."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from fake_service import FakeTranslator, fake_model
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.decoding.translation import SearchOptions
from nmt.serving.batching import SHORT_TOKENS, Batcher
from nmt.serving.metrics import Metrics
from nmt.serving.models import SCORED, Pair, ServedModel
from nmt.text.translator import USUAL, TextOptions
from nmt.tokenizers.sentences import Segment

BATCH = 4
ALTERNATIVES = TextOptions(SearchOptions(n_best=2, scored=True))


def segments(texts: list[str]) -> list[Segment]:
    return [Segment(text, "", len(text.split())) for text in texts]


def run(work: Callable[[Batcher], Coroutine[Any, Any, Any]]) -> tuple[Any, list[list[str]]]:
    """Return what work with a batcher returns, and the batches that the model received."""
    translator = FakeTranslator()
    model = ServedModel(Pair("en", "de"), translator, "fake", 1)
    batches = translator.batches

    async def main() -> Any:
        async with Batcher(model, BATCH, Metrics()) as batcher:
            found = await asyncio.wait_for(work(batcher), 30)
        assert batcher.waiting == 0
        return found

    return asyncio.run(main()), batches


def ask(requests: list[list[str]], searches: list[TextOptions] | None = None) -> tuple[list[Any], list[list[str]]]:
    """Return what each of many requests at a time gets, or why it fails, and the batches."""

    async def work(batcher: Batcher) -> list[Any]:
        searches_of = searches or [USUAL] * len(requests)
        asked = (batcher.find(segments(texts), search) for texts, search in zip(requests, searches_of, strict=True))
        return await asyncio.gather(*asked, return_exceptions=True)

    return run(work)


TEXTS = st.lists(st.lists(st.integers(1, 9).map(lambda count: " ".join(["one"] * count)), max_size=20), max_size=8)


@settings(max_examples=30, deadline=None)
@given(TEXTS)
def test_each_request_gets_its_own_translations_in_order(requests: list[list[str]]) -> None:
    named = [[f"{text} r{number}s{place}" for place, text in enumerate(texts)] for number, texts in enumerate(requests)]
    results, batches = ask(named)
    assert [[each.translations[0].text for each in request] for request in results] == [
        [f"de:{text.upper()}" for text in texts] for texts in named
    ]
    sent = [text for batch in batches for text in batch]
    assert sorted(sent) == sorted(text for texts in named for text in texts)  # each once
    assert all(0 < len(batch) <= BATCH for batch in batches)


@pytest.mark.parametrize("search", [USUAL, ALTERNATIVES])
def test_a_long_request_does_not_hold_up_short_ones(search: TextOptions) -> None:
    searches = [search, USUAL, USUAL, USUAL]
    _, batches = ask([[f"long {place}" for place in range(200)], ["short"], ["short"], ["short"]], searches)
    assert max(number for number, batch in enumerate(batches) if "short" in batch) <= 3


def test_a_short_request_does_not_wait_for_a_batch_of_long_sentences() -> None:
    async def work(batcher: Batcher) -> list[str]:
        ended = list[str]()

        async def ask_for(text: str) -> None:
            await batcher.find(segments([text]), USUAL)
            ended.append(text.split(maxsplit=1)[0])

        long = asyncio.create_task(ask_for("slow " * (SHORT_TOKENS + 1)))
        await asyncio.sleep(0.05)  # it is in work
        await asyncio.gather(long, ask_for("short"), ask_for("short"))
        return ended

    ended, batches = run(work)
    assert ended == ["short", "short", "slow"]
    assert [len(batch) for batch in batches] == [1, 2]


def test_batches_are_full_and_of_like_length() -> None:
    _, batches = ask([[" ".join(["one"] * count) for count in (1, 9) * BATCH]])
    assert [[len(text.split()) for text in batch] for batch in batches] == [[1] * BATCH, [9] * BATCH]
    _, batches = ask([["one"]] * 4 * BATCH)
    assert [len(batch) for batch in batches] == [BATCH] * 4


def test_kinds_of_search_do_not_mix() -> None:
    found, batches = ask([["one"]] * 9, [USUAL, SCORED, ALTERNATIVES] * 3)
    assert [len(each[0].translations) for each in found] == [1, 1, 2] * 3
    assert [len(batch) for batch in batches] == [3, 3, 3]


def test_a_sentence_that_fails_fails_its_own_request_alone() -> None:
    (one, poison, two), _ = ask([["one"], ["poison"], ["two"]])
    assert isinstance(poison, ValueError)
    assert [each[0].translations[0].text for each in (one, two)] == ["de:ONE", "de:TWO"]


def test_a_request_that_is_given_up_leaves_the_queue() -> None:
    async def work(batcher: Batcher) -> None:
        first = asyncio.create_task(batcher.find(segments(["slow"]), USUAL))
        await asyncio.sleep(0.05)  # it is in work
        second = asyncio.create_task(batcher.find(segments(["never"] * 10), USUAL))
        await asyncio.sleep(0)
        assert batcher.waiting == 10
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)
        assert batcher.waiting == 0
        await first

    _, batches = run(work)
    assert batches == [["slow"]]


def test_attention_is_for_those_who_ask() -> None:
    async def work(batcher: Batcher) -> list[bool]:
        found = await asyncio.gather(
            *(batcher.find(segments(["one"]), SCORED, attention=attention) for attention in (True, False))
        )
        return [each[0].attention is not None for each in found]

    wanted, batches = run(work)
    assert wanted == [True, False]
    assert len(batches) == 1


def test_models_without_attention() -> None:
    model = fake_model(has_attention=False)
    assert model.find(["one"], SCORED, [True])[0].attention is None


@pytest.mark.parametrize("positions", [3, 8])
def test_models_with_few_positions(positions: int) -> None:
    translator = FakeTranslator()
    limited = translator.config.model.model_copy(update={"positions": "learned", "max_positions": positions})
    translator.config = translator.config.model_copy(update={"model": limited})
    model = ServedModel(Pair("en", "de"), translator, "fake", 1)
    assert 1 <= model.most_tokens < positions
