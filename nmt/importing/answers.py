"""What PyTorch and transformers are asked about an original model, in a process without TensorFlow.

``nmt.export.process.call`` starts the process. Shapes: N tokens, V ids of the original.
"""

from pathlib import Path
from typing import TypedDict

from safetensors.numpy import save_file

from nmt.errors import DataError
from nmt.export.huggingface import load
from nmt.tokenizers.base import BOS, EOS, PAD

BATCH, LONGEST, BEAMS = 40, 40, 4
"""Sentences of a batch, most tokens of a translation, and beams."""


class Answer(TypedDict):
    """What the original does with a batch of sentences, in its own ids; rows are padded."""

    ids: list[list[int]]
    greedy: list[list[int]]
    """Greedy translations, behind the id that decoding starts from."""
    beam: list[list[int]]
    """Translations of beam search, likewise."""


def logits_file(folder: Path, number: int) -> Path:
    """Return the file with the array "logits" of a batch: those of the tokens of greedy translations, [N, V]."""
    return folder / f"logits-{number}.safetensors"


def answers(folder: str, texts: list[str], special: list[int], logits: str) -> list[Answer]:
    """Return the answers of an original to texts, a batch each.

    Args:
        folder: files of the original.
        texts: sentences.
        special: ids of the original for pad, unk, bos and eos.
        logits: folder for the files of ``logits_file``.
    """
    import torch  # noqa: PLC0415 - an optional extra
    import transformers  # noqa: PLC0415 - an optional extra

    tokenizer, model = load(Path(folder))
    pad, start = special[PAD], special[BOS]
    settings = {"pad_token_id": pad, "eos_token_id": special[EOS], "decoder_start_token_id": start,
                "do_sample": False, "max_new_tokens": LONGEST, "suppress_tokens": [pad, start]}  # fmt: skip
    found = list[Answer]()
    for place in range(0, len(texts), BATCH):
        inputs = dict(tokenizer(texts[place : place + BATCH], padding=True, return_tensors="pt"))
        greedy, beam = (
            model.generate(**inputs, generation_config=transformers.GenerationConfig(**settings, **search))
            for search in ({"num_beams": 1}, {"num_beams": BEAMS, "length_penalty": 0.0})
        )
        with torch.inference_mode():
            scores = model(**inputs, decoder_input_ids=greedy[:, :-1]).logits
        written = greedy[:, 1:] != pad
        save_file({"logits": scores[written].numpy()}, logits_file(Path(logits), len(found)))
        found.append({"ids": inputs["input_ids"].tolist(), "greedy": greedy.tolist(), "beam": beam.tolist()})
    return found


def convert_pickle(file: str, converted: str) -> None:
    """Write the arrays of pytorch_model.bin as safetensors. PyTorch's loader of weights alone runs no code of the file.

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
