"""Translations and logits of an original model by PyTorch and transformers, in a process without TensorFlow.

``nmt.export.process.call`` starts the process. Shapes: N tokens, V ids of the original.
"""

from pathlib import Path
from typing import TypedDict

from safetensors.numpy import save_file

from nmt.errors import DataError
from nmt.export.huggingface import load
from nmt.tokenizers.base import BOS, EOS, PAD

BATCH, LONGEST, BEAMS = 40, 40, 4
"""Number of sentences in a batch, most tokens of a translation, and number of beams."""


class Answer(TypedDict):
    """Answer of the original model to a batch of sentences, in the original's ids. Rows are padded."""

    ids: list[list[int]]
    """Source ids of each sentence."""
    greedy: list[list[int]]
    """Greedy translations, each after the id that decoding starts from."""
    beam: list[list[int]]
    """Best translations of beam search, each after the id that decoding starts from."""


def logits_file(folder: Path, number: int) -> Path:
    """Return the file of a batch's array "logits": float32 [N, V], for the N tokens of its greedy translations."""
    return folder / f"logits-{number}.safetensors"


def answers(folder: str, texts: list[str], special: list[int], logits: str) -> list[Answer]:
    """Return the answers of an original model to texts, one answer for each batch.

    Args:
        folder: folder with the files of the original.
        texts: sentences to translate.
        special: the original's ids of pad, unk, bos and eos.
        logits: folder in which the files of ``logits_file`` are written.
    """
    import torch  # noqa: PLC0415 - an optional extra
    import transformers  # noqa: PLC0415 - an optional extra

    tokenizer, model = load(Path(folder))
    pad, start = special[PAD], special[BOS]
    settings = {"pad_token_id": pad, "eos_token_id": special[EOS], "decoder_start_token_id": start,
                "do_sample": False, "max_new_tokens": LONGEST, "suppress_tokens": [pad, start]}  # fmt: skip
    greedy_search = transformers.GenerationConfig(**settings, num_beams=1)
    beam_search = transformers.GenerationConfig(**settings, num_beams=BEAMS, length_penalty=0.0)
    results = list[Answer]()
    for first in range(0, len(texts), BATCH):
        inputs = dict(tokenizer(texts[first : first + BATCH], padding=True, return_tensors="pt"))
        greedy = model.generate(**inputs, generation_config=greedy_search)
        beam = model.generate(**inputs, generation_config=beam_search)
        with torch.inference_mode():
            scores = model(**inputs, decoder_input_ids=greedy[:, :-1]).logits
        is_token = greedy[:, 1:] != pad
        save_file({"logits": scores[is_token].numpy()}, logits_file(Path(logits), len(results)))
        results.append({"ids": inputs["input_ids"].tolist(), "greedy": greedy.tolist(), "beam": beam.tolist()})
    return results


def convert_pickle(file: str, converted: str) -> None:
    """Write the arrays of pytorch_model.bin as safetensors.

    PyTorch's loader for weights only (``weights_only``) runs no code of the file.

    Raises:
        DataError: if the file is damaged, or holds more than weights.
    """
    import torch  # noqa: PLC0415 - an optional extra

    try:
        tensors = torch.load(file, map_location="cpu", weights_only=True)
        arrays = {str(name): tensor.float().contiguous().numpy() for name, tensor in tensors.items()}
    except Exception as error:  # a forged file fails in many ways
        reason = str(error).strip().partition("\n")[0][:200] or type(error).__name__
        raise DataError(f"{file} cannot be read, or holds more than weights: {reason}. Restore a copy.") from None
    save_file(arrays, converted)
