"""The configuration: four typed sections, every key documented where it is declared."""

from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, model_validator

from nmt.errors import NmtError
from nmt.files import check_name
from nmt.yaml_file import Dumper


class Section(BaseModel):
    """A part of the configuration, or what is stored in a file: immutable, and strict about types and names."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class Documented(Section):
    """A section whose fields can be asked for the docstrings below them.

    Pydantic looks these up in the source, among all modules that are loaded: with TensorFlow's that takes a while, so
    what is stored in files does without.
    """

    model_config = ConfigDict(use_attribute_docstrings=True)


class DataConfig(Documented):
    """What ``prepare`` does with a file of sentence pairs."""

    dataset: str | None = None
    """Name of the prepared dataset: ``prepare`` writes it, ``train`` reads it. null: ``prepare`` takes the name of
    the file, ``train`` the dataset prepared last."""
    n_sentences: int | None = Field(None, ge=3, le=2**40)
    """Take the first so many pairs of the file; null takes all. Files given for validation and test count apart."""
    split: Literal["by_source", "random"] = "by_source"
    """``by_source`` keeps all pairs with one source sentence on one side of the split, so that no test sentence was
    seen in training, and leaves pairs out of training whose source stands in a validation or test file given apart;
    ``random`` deals out pairs whatever their source."""
    train_share: float = Field(0.8, gt=0, lt=1)
    """Share of the pairs for training; the three shares add up to 1."""
    validation_share: float = Field(0.1, gt=0, lt=1)
    """Share of the pairs for the validation pass after each epoch."""
    test_share: float = Field(0.1, gt=0, lt=1)
    """Share of the pairs kept for the final test."""
    seed: int = Field(73, ge=0, lt=2**32)
    """Seed of the shuffle before the split. The default keeps "im thirsty", the example sentence of the README, in the
    training split of the lesson's corpus, and the sentences that say the same of others out of it."""
    source_column: Annotated[int, Field(ge=1, le=2**20)] | str | None = None
    """Where the source sentences stand: the number of a TSV's column, from 1, or its name in the first line; the field
    of JSON Lines; the language of a TMX. null: column 1, the field "source", the first language of the TMX."""
    target_column: Annotated[int, Field(ge=1, le=2**20)] | str | None = None
    """The same for the target sentences. null: column 2, the field "target", the second language."""
    header: bool = False
    """The first line of a TSV names its columns and is no pair. Naming a column says so too."""
    tokenizer: Literal["auto", "word", "char", "subword"] = "auto"
    """``word``: one id for each word, words separated by white space. ``char``: one for each character. ``subword``:
    one for each piece of a vocabulary trained on the corpus (sentencepiece). ``auto``: words for text that is already
    lower-case ASCII words without punctuation, subwords for any other."""
    normalisation: Literal["auto", "none", "nfkc", "ascii-words"] = "auto"
    """What is done to text before tokenizing, in training and in translation alike. ``none``: white space is
    collapsed. ``nfkc``: also Unicode NFKC. ``ascii-words``: lower case, accents stripped, ASCII letters only, words
    with digits dropped, as in corpora cleaned for lessons. ``auto``: that for text cleaned so already, else nfkc."""
    vocabulary_size: int | None = Field(None, ge=8, le=1_000_000)
    """Number of ids, the four special ones included. Words and characters: at most so many, the most frequent; null:
    no limit. Subwords: null chooses by the size of the corpus, 8,000 for 20,000 to 200,000 training pairs."""
    min_count: int = Field(1, ge=1, le=2**40)
    """A word or character seen less often than this in the training split becomes unk."""
    joint_vocabulary: bool | Literal["auto"] = "auto"
    """One vocabulary over both sides, which ``model.tie_embeddings: all`` needs, instead of one a side. ``auto``: one
    for subwords alone."""
    subword_model: Literal["unigram", "bpe"] = "unigram"
    """How subwords are found: ``unigram`` language model (Kudo 2018) or byte-pair encoding (Sennrich et al. 2016)."""
    byte_fallback: bool = True
    """A character that training did not see becomes the bytes of its UTF-8, so that no subword is ever unk."""
    subword_sampling: bool = False
    """Keep the raw training text in the dataset, so that training can cut it into other subwords every epoch."""
    max_tokens: int | None = Field(500, ge=1, le=2**40)
    """Pairs with more tokens on a side are left out of training and validation, never out of the test; null keeps
    them."""
    max_length_ratio: float | None = Field(9.0, gt=1)
    """Pairs with a side so many times as long as the other, in tokens with eos, are left out likewise; null keeps
    them."""
    drop_empty: bool = False
    """Drop (and count) pairs with a side that is empty after normalisation, instead of refusing the file."""
    drop_unreadable: bool = False
    """Drop (and count) lines that are not UTF-8 or hold no pair, instead of refusing the file."""
    drop_control: bool = True
    """Drop pairs with control characters, such as NUL: signs of a broken encoding."""
    drop_identical: bool = False
    """Drop pairs whose sides are the same."""
    drop_duplicates: bool = False
    """Drop pairs that stood before."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        total = self.train_share + self.validation_share + self.test_share
        if abs(total - 1) > 1e-6:
            raise ValueError(
                f"train_share, validation_share and test_share add up to 1; received "
                f"{self.train_share} + {self.validation_share} + {self.test_share} = {total:g}. Change "
                "another of them too"
            )
        if self.dataset is not None:
            try:
                check_name(self.dataset, "dataset")
            except NmtError as error:  # so that the message says where it was set
                raise ValueError(str(error).removesuffix(".")) from None
        return self


class ModelConfig(Documented):
    """The Transformer (Vaswani et al. 2017, "Attention Is All You Need"), sized and varied."""

    architecture: Literal["transformer"] = "transformer"
    """Which model class is built."""
    encoder_layers: int = Field(6, ge=1, le=1_000)
    """Layers of the encoder (N in the paper)."""
    decoder_layers: int = Field(6, ge=1, le=1_000)
    """Layers of the decoder (N in the paper)."""
    d_model: int = Field(512, ge=2, le=65_536, multiple_of=2)
    """Width of the residual stream; even, since sinusoids come in pairs of sine and cosine."""
    d_ff: int = Field(2048, ge=1, le=2**20)
    """Inner width of the feed-forward blocks."""
    heads: int = Field(8, ge=1, le=65_536)
    """Attention heads (h in the paper)."""
    head_size: int | None = Field(None, ge=1, le=65_536)
    """Size of the queries, keys and values of one head (d_k in the paper); null: d_model / heads."""
    attention_scale: Literal["head", "projection"] = "head"
    """What attention scores are divided by: ``head``, sqrt(head_size), as in the paper; ``projection``,
    sqrt(heads x head_size), which flattens the softmax."""
    dropout: float = Field(0.1, ge=0, lt=1)
    """Dropout on the embeddings and on the output of each block, before it joins the residual stream."""
    attention_dropout: float = Field(0.0, ge=0, lt=1)
    """Dropout on the attention weights, after the softmax: training hides a share of what each query looks at."""
    feed_forward_dropout: float = Field(0.0, ge=0, lt=1)
    """Dropout within the feed-forward blocks, on the inner activation after the ReLU."""
    word_dropout: float = Field(0.0, ge=0, lt=1)
    """Share of the words, in source and translation so far, that training replaces by unk, so that the model translates
    around words it does not know."""
    norm: Literal["post", "pre"] = "post"
    """Layer normalisation after each residual sum (``post``, the paper) or before each block (``pre``)."""
    initialisation: Literal["glorot", "small"] = "glorot"
    """Random values that matrices start from: ``glorot``, uniform by their width (Glorot and Bengio 2010), embeddings
    normal with deviation 1 / sqrt(d_model); ``small``, all normal with deviation 0.02 (Devlin et al. 2019, "BERT"),
    so that with post-norm each residual sum is at first little more than what goes in."""
    layer_norm_epsilon: float = Field(1e-6, gt=0, lt=1)
    """Added to the variance in layer normalisation."""
    share_decoder_norm: bool = False
    """One layer norm for both attention blocks of a decoder layer, instead of one each; post-norm only."""
    word_embedding: Literal["trained", "sinusoidal"] = "trained"
    """``trained`` as in the paper; ``sinusoidal``: row i is the encoding of position i, fixed."""
    scale_embeddings: bool = True
    """Multiply word embeddings by sqrt(d_model) (section 3.4 of the paper)."""
    tie_embeddings: Literal["none", "output", "all"] = "output"
    """Which matrices are one: ``output``, target embedding and output layer; ``all``, the source embedding too
    (needs ``data.joint_vocabulary``); ``none``, each its own."""
    positions: Literal["sinusoidal", "learned"] = "sinusoidal"
    """Position embeddings: ``sinusoidal`` for any length, or ``learned`` up to ``max_positions``."""
    max_positions: int = Field(512, ge=2, le=2**20)
    """Longest sentence, in tokens with bos and eos, that learned positions can take; longer ones are refused."""
    source_bos: bool = True
    """The encoder reads bos before the source sentence; false drops it."""

    @property
    def size_per_head(self) -> int:
        """Size of one head: ``head_size``, or its default."""
        return self.head_size if self.head_size is not None else self.d_model // self.heads

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.head_size is None and self.d_model % self.heads:
            fitting = [heads for heads in range(1, min(self.d_model, 2 * self.heads) + 1) if self.d_model % heads == 0]
            nearest_heads = min(fitting, key=lambda heads: abs(heads - self.heads))
            raise ValueError(
                f"heads must divide d_model unless head_size is set; received heads {self.heads} with d_model "
                f"{self.d_model}. Nearest that fits: heads {nearest_heads}"
            )
        if self.word_embedding == "sinusoidal" and self.tie_embeddings != "none":
            raise ValueError(
                "a fixed sinusoidal word_embedding cannot be tied to a trained output layer; received tie_embeddings "
                f"{self.tie_embeddings!r}. Set tie_embeddings: none"
            )
        if self.share_decoder_norm and self.norm == "pre":
            raise ValueError(
                "share_decoder_norm goes with norm: post alone; received norm 'pre'. Set norm: post, or "
                "share_decoder_norm: false"
            )
        return self


Precision = Literal["float32", "bfloat16", "float16"]
BestBy = Literal["accuracy", "loss", "bleu", "chrf"]
BATCH_SIZES = {"sentences": 64, "tokens": 2048}


class TrainingConfig(Documented):
    """The training loop: batches, optimizer, schedule, what is kept."""

    epochs: int = Field(20, ge=1, le=1_000_000)
    """Passes over the training pairs. A finished run goes on when this is raised."""
    batch_type: Literal["sentences", "tokens"] = "sentences"
    """What ``batch_size`` counts: sentence pairs, or target tokens, of pairs of like length."""
    batch_size: int = Field(64, ge=1, le=2**24)
    """Sentence pairs in a batch; or its most target tokens, eos and padding too, and half its most source tokens.
    null: 64 sentences, or 2,048 tokens, which ``batch_type`` decides."""
    sort_by_length: bool = False
    """Batches of pairs of like length, as those by tokens always are: less attention over padding, but a step that sees
    one length alone learns worse where batches are small."""
    accumulate: int = Field(1, ge=1, le=1_000_000)
    """Batches whose gradients are added up before each step of the optimizer, as if they were one."""
    pack: bool = True
    """Compute all but attention for the tokens that count, end to end, instead of for padded rows. The result is the
    same; false is slower, and there for comparisons."""
    xla: bool = False
    """Compile the training step with XLA, once for each shape of batch: for GPUs, with ``pack: false``. On a processor
    it is slower, since XLA leaves the matrix units unused."""
    pad_to_longest: bool = False
    """Pad every batch to the longest sentence of the training split, not of the batch. Slower; for comparisons."""
    reshuffle: bool = True
    """New batches in a new order every epoch; false repeats those of the first."""
    seed: int = Field(1, ge=0, lt=2**32)
    """Seed of the first weights, of dropout and of the order of batches."""
    precision: Precision | Literal["auto"] = "auto"
    """What layers compute in. ``bfloat16`` is about twice as fast where the processor or GPU has it natively; weights,
    norms, loss and optimizer stay float32. ``auto`` takes it there and float32 elsewhere, and says so. ``float16`` is
    for GPUs without bfloat16; its loss is scaled so that small gradients survive."""
    label_smoothing: float = Field(0.1, ge=0, lt=1)
    """Share of each target's probability that the objective spreads evenly over the vocabulary (0.1 in the paper,
    section 5.4). The losses reported are without it."""
    schedule: Literal["paper", "inverse_sqrt", "cosine", "linear"] = "paper"
    """How the learning rate falls after its straight rise. ``paper``: with 1/sqrt(step) from a peak that the width of
    the model and ``warmup_steps`` decide (equation 3 of the paper); ``inverse_sqrt``: the same from
    ``peak_learning_rate``; ``cosine``: along half a cosine (Loshchilov and Hutter 2017); ``linear``: straight."""
    peak_learning_rate: float | None = Field(None, gt=0)
    """Learning rate at the end of the rise, which every schedule but ``paper`` needs and ``paper`` works out."""
    warmup_steps: int = Field(4000, ge=1, le=2**40)
    """Steps over which the learning rate rises before it falls."""
    decay_steps: int | None = Field(None, ge=1, le=2**40)
    """Steps after the rise over which ``cosine`` and ``linear`` fall, to stay at ``final_learning_rate`` from then on.
    null: so many that they get there with the last of ``epochs``, which is then fixed for the run."""
    final_learning_rate: float = Field(0.0, ge=0)
    """Learning rate to which ``cosine`` and ``linear`` fall."""
    learning_rate_scale: float = Field(1.0, gt=0)
    """Factor on schedule ``paper``; for the others it is 1, since ``peak_learning_rate`` is their peak."""
    adam_beta_1: float = Field(0.9, ge=0, lt=1)
    """Decay of Adam's mean of gradients."""
    adam_beta_2: float = Field(0.98, ge=0, lt=1)
    """Decay of Adam's mean of squared gradients."""
    adam_epsilon: float = Field(1e-9, gt=0)
    """Added to the root of the squared gradients' mean in Adam."""
    weight_decay: float = Field(0.0, ge=0)
    """Decoupled weight decay (Loshchilov and Hutter 2019): each step shrinks matrices, embeddings among them, by the
    learning rate times this share, whatever their gradients; biases and layer norms are let be."""
    clip_norm: float | None = Field(None, gt=0)
    """Gradients whose norm, over all weights together, is larger are scaled down to it (Pascanu et al. 2013); null:
    none are."""
    ema_decay: float | None = Field(None, gt=0, lt=1)
    """Share that an exponential moving average of the weights keeps of itself at each step, the rest coming from the
    new weights; in the first steps less, so that it forgets the untrained ones. null: no average is kept."""
    skip_nonfinite: int = Field(0, ge=0, le=2**40)
    """Steps of a run that may be left out because the loss or the gradients are not finite numbers, before it stops."""
    start_from: str | None = None
    """Begin with the weights of another run, ``RUN`` or ``RUN:EPOCH``, whose vocabulary the dataset must have (prepare
    it with ``--tokenizer-of RUN``); null: with fresh ones."""
    validate_every: int | None = Field(None, ge=1, le=2**40)
    """Validate every so many steps too; null: after each epoch alone."""
    decode_validation: int = Field(0, ge=0, le=2**40)
    """Translate the first so many validation sentences, greedily, at each validation and score them with BLEU and
    chrF; 0: none."""
    samples: int = Field(3, ge=0, le=1000)
    """Translate and show the first so many validation sentences at each validation."""
    best_by: BestBy = "accuracy"
    """Which validation is the best: of the highest ``accuracy`` of tokens, ``bleu`` or ``chrf``, or the lowest
    ``loss``."""
    patience: int | None = Field(None, ge=1, le=1_000_000)
    """Stop after so many validations in a row that were not the best so far; null: train all epochs."""
    save_every: int | None = Field(None, ge=1, le=2**40)
    """Save a state to go on from every so many steps, besides each epoch; null: do not."""
    save_every_minutes: float | None = Field(10.0, gt=0)
    """Save one whenever the last is so many minutes old; null: do not."""
    max_to_keep: int | None = Field(None, ge=1, le=1_000_000)
    """Keep the weights of the last so many epochs, and always of the best; null keeps those of every epoch."""
    average_last: int = Field(5, ge=1, le=1_000_000)
    """A run ends with the mean of the weights of the last so many epochs, at most a quarter of all, and translates with
    it (section 6.1 of the paper); 1: with those of the best epoch."""
    log_every: int = Field(50, ge=1, le=2**40)
    """Steps between two records in the metrics file, and two lines where there is no terminal."""

    @model_validator(mode="before")
    @classmethod
    def _choose_batch_size(cls, values: Any) -> Any:
        if not isinstance(values, dict) or values.get("batch_size") is not None:
            return values
        return {**values, "batch_size": BATCH_SIZES["tokens" if values.get("batch_type") == "tokens" else "sentences"]}

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.best_by in {"bleu", "chrf"} and not self.decode_validation:
            raise ValueError(
                f"best_by {self.best_by} needs translations of validation sentences; received decode_validation 0. Set "
                "training.decode_validation=500, or so many as shall be translated"
            )
        if self.xla and self.pack:
            raise ValueError(
                "xla needs shapes that do not depend on the data, and pack makes some that do; received xla true with "
                "pack true. Set training.pack=false"
            )
        self._check_schedule()
        return self

    def _check_schedule(self) -> None:
        falls = self.schedule in {"cosine", "linear"}
        if self.schedule == "paper" and self.peak_learning_rate is not None:
            raise ValueError(
                "schedule paper works its peak out from d_model and warmup_steps; received peak_learning_rate "
                f"{self.peak_learning_rate:g} with it. Set schedule to inverse_sqrt, which falls the same way, or to "
                "cosine or linear, or scale the peak with learning_rate_scale"
            )
        if self.schedule != "paper" and self.peak_learning_rate is None:
            raise ValueError(
                f"schedule {self.schedule} needs a peak_learning_rate; received null. Set it, for example to 0.0005, "
                "or schedule to paper, which works it out"
            )
        if self.schedule != "paper" and self.learning_rate_scale != 1:
            raise ValueError(
                "learning_rate_scale goes with schedule paper alone, the others have their peak_learning_rate as peak; "
                f"received learning_rate_scale {self.learning_rate_scale:g} with schedule {self.schedule}. Set "
                "training.learning_rate_scale=1, and the peak that is meant as peak_learning_rate"
            )
        of_fall = {"decay_steps": self.decay_steps, "final_learning_rate": self.final_learning_rate or None}
        received = " and ".join(f"{key} {value:g}" for key, value in of_fall.items() if value is not None)
        if received and not falls:
            raise ValueError(
                f"decay_steps and final_learning_rate go with schedule cosine or linear alone; received {received} "
                f"with schedule {self.schedule}. Leave them out, or set schedule to cosine or linear"
            )
        if falls and self.peak_learning_rate is not None and self.final_learning_rate > self.peak_learning_rate:
            raise ValueError(
                f"the learning rate falls from peak_learning_rate to final_learning_rate; received a peak of "
                f"{self.peak_learning_rate:g} below the final {self.final_learning_rate:g}. Lower "
                "final_learning_rate"
            )


class DecodingConfig(Documented):
    """How translations are searched for."""

    batch_size: int = Field(128, ge=1, le=2**24)
    """Sentences translated at a time."""
    precision: Literal["auto", "float32", "bfloat16"] = "float32"
    """What is computed in, as ``training.precision``. ``bfloat16`` is faster where the hardware has it natively, but
    rounds the scores that words are compared by, and so may choose another of two that score nearly the same."""
    beam_size: int = Field(1, ge=1, le=1000)
    """Beginnings of a translation that are kept at each step; 1 is greedy search."""
    length_penalty: float = Field(0.6, ge=0)
    """alpha in Wu et al. 2016, equation 14: log-probabilities are divided by ((5 + tokens) / 6)^alpha, so that long
    translations are not at a disadvantage in beam search; 0 compares them as they are."""
    coverage_penalty: float = Field(0.0, ge=0)
    """beta in Wu et al. 2016, equation 14: weight in beam search of sum_i log min(attention to source token i, 1), the
    last decoder layer's, averaged over its heads; 0 leaves it out."""
    temperature: float = Field(1.0, gt=0)
    """Sampling divides logits by it: below 1 likely words become likelier."""
    top_k: int = Field(0, ge=0, le=2**31 - 1)
    """Sampling draws from the so many likeliest words; 0: from all."""
    top_p: float = Field(1.0, gt=0, le=1)
    """Sampling draws from the fewest likeliest words that have this probability together."""
    seed: int = Field(1, ge=0, lt=2**32)
    """Seed of sampling; what is drawn for a sentence hangs on it and on the sentence's number alone."""
    max_length_ratio: float = Field(2.0, gt=0, le=1_000)
    """A translation may have ``max_length_ratio`` x source tokens + ``max_length_extra`` tokens."""
    max_length_extra: int = Field(10, ge=1, le=1_000_000)
    """See ``max_length_ratio``."""


class Config(Documented):
    """The whole configuration of a run."""

    data: DataConfig = DataConfig()
    model: ModelConfig = ModelConfig()
    training: TrainingConfig = TrainingConfig()
    decoding: DecodingConfig = DecodingConfig()

    def to_yaml(self) -> str:
        """Return every key with its value, defaults included, as YAML that ``load_config`` reads back unchanged."""
        return yaml.dump(self.model_dump(), Dumper=Dumper, sort_keys=False, allow_unicode=True)
