"""Batches of sentences from many requests."""

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


def run(work: Callable[[Batcher, ServedModel], Coroutine[Any, Any, Any]]) -> tuple[Any, list[list[str]]]:
    """Return the result of work with a batcher and a model, and the batches that the model received."""
    translator = FakeTranslator()
    model = ServedModel(Pair("en", "de"), translator, "fake", 1)
    batches = translator.batches

    async def main() -> Any:
        async with Batcher(BATCH, Metrics()) as batcher:
            result = await asyncio.wait_for(work(batcher, model), 30)
        assert batcher.waiting == 0
        return result

    return asyncio.run(main()), batches


def ask(requests: list[list[str]], searches: list[TextOptions] | None = None) -> tuple[list[Any], list[list[str]]]:
    """Return the results or exceptions of simultaneous requests, and the batches."""

    async def work(batcher: Batcher, model: ServedModel) -> list[Any]:
        pairs = zip(requests, searches or [USUAL] * len(requests), strict=True)
        calls = (batcher.translate(model, segments(texts), search) for texts, search in pairs)
        return await asyncio.gather(*calls, return_exceptions=True)

    return run(work)


TEXTS = st.lists(st.lists(st.integers(1, 9).map(lambda count: " ".join(["one"] * count)), max_size=20), max_size=8)


@settings(max_examples=30, deadline=None)
@given(TEXTS)
def test_each_request_gets_its_own_translations_in_order(requests: list[list[str]]) -> None:
    named = [[f"{text} r{number}s{index}" for index, text in enumerate(texts)] for number, texts in enumerate(requests)]
    results, batches = ask(named)
    assert [[result.translations[0].text for result in request] for request in results] == [
        [f"de:{text.upper()}" for text in texts] for texts in named
    ]
    sent = [text for batch in batches for text in batch]
    assert sorted(sent) == sorted(text for texts in named for text in texts)  # every sentence exactly once
    assert all(0 < len(batch) <= BATCH for batch in batches)


@pytest.mark.parametrize("search", [USUAL, ALTERNATIVES])
def test_a_long_request_does_not_hold_up_short_ones(search: TextOptions) -> None:
    searches = [search, USUAL, USUAL, USUAL]
    _, batches = ask([[f"long {index}" for index in range(200)], ["short"], ["short"], ["short"]], searches)
    assert max(number for number, batch in enumerate(batches) if "short" in batch) <= 3


def test_a_short_request_does_not_wait_for_a_batch_of_long_sentences() -> None:
    async def work(batcher: Batcher, model: ServedModel) -> list[str]:
        ended = list[str]()

        async def ask_for(text: str) -> None:
            await batcher.translate(model, segments([text]), USUAL)
            ended.append(text.split(maxsplit=1)[0])

        long = asyncio.create_task(ask_for("slow " * (SHORT_TOKENS + 1)))
        await asyncio.sleep(0.05)  # the long request is being computed
        await asyncio.gather(long, ask_for("short"), ask_for("short"))
        return ended

    ended, batches = run(work)
    assert ended == ["short", "short", "slow"]
    assert [len(batch) for batch in batches] == [1, 2]


def test_batches_are_full_and_have_sentences_of_similar_length() -> None:
    _, batches = ask([[" ".join(["one"] * count) for count in (1, 9) * BATCH]])
    assert [[len(text.split()) for text in batch] for batch in batches] == [[1] * BATCH, [9] * BATCH]
    _, batches = ask([["one"]] * 4 * BATCH)
    assert [len(batch) for batch in batches] == [BATCH] * 4


def test_kinds_of_search_do_not_mix() -> None:
    results, batches = ask([["one"]] * 9, [USUAL, SCORED, ALTERNATIVES] * 3)
    assert [len(result.translations) for [result] in results] == [1, 1, 2] * 3
    assert [len(batch) for batch in batches] == [3, 3, 3]


def test_pairs_of_a_model_share_its_queue_and_do_not_mix() -> None:
    async def work(batcher: Batcher, german: ServedModel) -> list[list[str]]:
        translator = FakeTranslator("fr")
        translator.batches = german._translator.batches  # type: ignore[attr-defined]
        french = ServedModel(Pair("en", "fr"), translator, "fake", 1)  # type: ignore[arg-type]
        calls = [batcher.translate(model, segments(["one", "two"]), USUAL) for model in (german, french) * 2]
        return [[result.translations[0].text for result in results] for results in await asyncio.gather(*calls)]

    texts, batches = run(work)
    assert texts == [["de:ONE", "de:TWO"], ["fr:ONE", "fr:TWO"]] * 2
    assert [len(batch) for batch in batches] == [4, 4]


def test_a_sentence_that_fails_only_fails_its_own_request() -> None:
    (first, poison, second), _ = ask([["one"], ["poison"], ["two"]])
    assert isinstance(poison, ValueError)
    assert [result.translations[0].text for [result] in (first, second)] == ["de:ONE", "de:TWO"]


def test_a_cancelled_request_leaves_the_queue() -> None:
    async def work(batcher: Batcher, model: ServedModel) -> None:
        first = asyncio.create_task(batcher.translate(model, segments(["slow"]), USUAL))
        await asyncio.sleep(0.05)  # the first request is being computed
        second = asyncio.create_task(batcher.translate(model, segments(["never"] * 10), USUAL))
        await asyncio.sleep(0)
        assert batcher.waiting == 10
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)
        assert batcher.waiting == 0
        await first

    _, batches = run(work)
    assert batches == [["slow"]]


def test_attention_is_returned_on_request() -> None:
    async def work(batcher: Batcher, model: ServedModel) -> list[bool]:
        results = await asyncio.gather(
            *(batcher.translate(model, segments(["one"]), SCORED, attention=attention) for attention in (True, False))
        )
        return [result.attention is not None for [result] in results]

    has_attention, batches = run(work)
    assert has_attention == [True, False]
    assert len(batches) == 1


def test_models_without_attention() -> None:
    model = fake_model(has_attention=False)
    assert model.translate(["one"], SCORED, [True])[0].attention is None


@pytest.mark.parametrize("positions", [3, 8])
def test_models_with_few_positions(positions: int) -> None:
    translator = FakeTranslator()
    limited = translator.config.model.model_copy(update={"positions": "learned", "max_positions": positions})
    translator.config = translator.config.model_copy(update={"model": limited})
    model = ServedModel(Pair("en", "de"), translator, "fake", 1)
    assert 1 <= model.most_tokens < positions
