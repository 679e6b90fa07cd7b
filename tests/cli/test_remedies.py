"""Remedies of messages.txt work: a command that follows a remedy is not refused for the same reason.

A row names a message by its key phrase in test_messages.py, whose steps lead to it, and then the commands that follow
the remedy. Words that the remedy adds stand in the message, but for names and values that the user chooses, in braces.
"""

# ruff: noqa: E501 - a row is a line

import re
import shutil
from pathlib import Path

import pytest
from test_messages import SECTIONS, Row, run, take

from nmt.config.schema import Config

REMEDIES = r"""
# prepare
has no tab: => nmt prepare pairs.tsv --set data.drop_unreadable=true
line 2 has 2 columns: => nmt prepare pairs.tsv --set data.target_column=3 --set data.drop_unreadable=true
names the columns 'english, german' => nmt prepare pairs.tsv --set data.source_column=english --set data.target_column={german}
line 1 has the fields a, b => nmt prepare pairs.jsonl --set data.source_column={a} --set data.target_column={b}
data.source_column is 1 => nmt prepare pairs.jsonl --set data.source_column={source} --set data.target_column={target}
unit 2 has segments in en, fr => nmt prepare pairs.tmx --set data.drop_unreadable=true
has segments in de, en, fr in one unit => nmt prepare pairs.tmx --set data.source_column=en --set data.target_column=de
two.zip holds a.txt, b.txt => nmt prepare two.zip/a.txt
1 distinct source => nmt prepare pairs.tsv --set data.split=random
4 x validation source => nmt prepare pairs.tsv --validation pairs.tsv --test pairs.tsv --set data.split=random
exceed data.max_tokens 1 => nmt prepare pairs.tsv --set data.max_tokens=null
A subword vocabulary of 20 ids => nmt prepare pairs.tsv --set data.tokenizer=subword --set data.vocabulary_size=548
A subword vocabulary of 20 ids => nmt prepare pairs.tsv --set data.tokenizer=char
seed 73 before => nmt prepare english-german-both.pkl --set data.seed=7 --name {other}
seed 73 before => nmt prepare english-german-both.pkl --set data.seed=7 --overwrite
target_language 'de' before => nmt prepare english-german-both.pkl --languages en-fr --overwrite
The filter language needs => nmt prepare pairs.tsv --filters language --languages en-de
has no scores => nmt prepare english-german-both.pkl --name new --filters score --set data.score_runs=[{base}]
no filter 'copys' => nmt prepare english-german-both.pkl --name {new} --filters numbers,copies
train_share is 0.9 => nmt prepare english-german-both.pkl --name {new} --set data.train_share=0.9 --set data.validation_share={0.05} --set data.test_share={0.05}
# configurations
heads is 5 and d_model is 32 => nmt train --run {new} --config base.yaml --set model.heads=4
positions is rotary => nmt train --run {new} --config base.yaml --set model.positions=sinusoidal --set model.head_size=5
word_embedding is sinusoidal => nmt train --run {new} --config base.yaml --set model.word_embedding=sinusoidal --set model.tie_embeddings=none
share_decoder_norm is true => nmt train --run {new} --config base.yaml --set model.share_decoder_norm=true --set model.norm_placement=post
first_state is final => nmt train --config rnn.yaml --set model.first_state=linear --set training.epochs={1}
window is local-p => nmt train --config rnn.yaml --set model.window=global --set training.epochs={1}
best_by is bleu => nmt train --run {new} --config base.yaml --set training.best_by=bleu --set training.decode_validation=500
schedule is noam and => nmt train --run {new} --config base.yaml --set training.peak_learning_rate=0.001 --set training.schedule=inverse_sqrt
schedule is cosine and peak => nmt train --run {new} --config base.yaml --set training.schedule=cosine --set training.peak_learning_rate=0.0005
schedule is cosine and learning => nmt train --run {new} --config {base.yaml} --set training.schedule=cosine --set training.peak_learning_rate={0.0005} --set training.learning_rate_scale=1
'training.epochs') => nmt train --run {new} --config {base.yaml} --set training.epochs=1
has no section, key and value => nmt train --run {new} --config {base.yaml} --set training.epochs={1}
# training
its weights have other names => nmt train --config base.yaml --set model.d_ff=32 --run {new}
it has no moving averages => nmt train --config base.yaml --set training.ema_decay=0.9 --run {new}
model.heads: 4 before => nmt train --config base.yaml --set model.heads=2 --run {new}
model.heads: 4 before => nmt train --config base.yaml --set model.heads=2 --allow-changes
training.xla: True => nmt train --run base --allow-changes
Run 'base' and dataset 'other' have different tokenizers => nmt prepare {english-german-both.pkl} --tokenizer-of base --name {own} --set {data.seed=7}; nmt train --run base --dataset {own} --allow-changes
dataset: 'english-german-both' before => nmt train --run {new} --config {base.yaml} --dataset other
dataset: 'english-german-both' before => nmt train --run base --dataset other --allow-changes
A run keeps its architecture => nmt train --config base.yaml --run {new}
trains with optimizer 'muon' => nmt train --config rnn.yaml --set training.optimizer=adam --run {new} --from rnn
this model reads at most 5 => nmt train --run new --config {base.yaml} --set model.positions=learned --set model.max_positions=7
this model reads at most 5 => nmt train --run new --config {base.yaml} --set model.positions=sinusoidal --set model.max_positions=5
has 13 ids on the source side => nmt train --run new --config {base.yaml} --set model.tie_embeddings=output
its content is not as it was saved => nmt train --run {new} --config {base.yaml}
holds no state => nmt train --config {base.yaml} --run {new} --from base
Start another run from its weights with --from both => nmt train --config {base.yaml} --run {new} --from both
step 5, batch 5 of epoch 1 => nmt train --run {other} --config base.yaml --set training.learning_rate_scale=1
Training diverged: validation loss => nmt train --run {other} --config base.yaml --set training.learning_rate_scale=1
manifest.json is damaged: Expecting => nmt prepare {english-german-both.pkl} --overwrite; nmt train --run new --config {base.yaml}
manifest.json has format 99 => nmt prepare {english-german-both.pkl} --overwrite; nmt train --run new --config {base.yaml}
the SHA-256 of data/ => nmt prepare {english-german-both.pkl} --overwrite; nmt train --run new --config {base.yaml}
# use
Run 'base' has no BLEU to draw => nmt train --config {base.yaml} --run {new} --set training.decode_validation=500; nmt plot bleu --run {new}
no validation BLEU by steps => nmt train --config {base.yaml} --run {new} --set training.decode_validation=500; nmt plot compare {new} --metric bleu --by steps
has no sample translations => nmt train --config {base.yaml} --run {new} --set training.samples=3; nmt samples --run {new}
Run 'base' has no averaged => nmt average --last {2}; nmt translate --epoch average 'im thirsty'
has no export 'ctranslate2-int8' => nmt export --run base --to ctranslate2 --quantization int8 --tolerance {100}; nmt translate --export ctranslate2-int8 'im thirsty'
has no export 'fast' => nmt export --run base --to ctranslate2 --output checkpoints/base/exports/fast; nmt synthesize mono.en --name bt --export fast
model holds no exported model => nmt export --run {base} --to ctranslate2 --output model; nmt translate --export ./model 'im thirsty'
received --epoch 2 => nmt export --run base --epoch 2 --to ctranslate2 --overwrite; nmt translate --export ctranslate2-float32 --epoch 2 'im thirsty'
exports/ctranslate2-float32 exists already => nmt export --to ctranslate2 --overwrite
data/bt.jsonl.gz exists already => nmt synthesize mono.en --name bt --export {none} --overwrite
was begun with other settings => nmt synthesize mono.en --name bt --export none --overwrite
--n-best 2 needs a beam => nmt translate --n-best 2 --beam 2 'im thirsty'
decoding.top_p is for sampling => nmt translate --sample --set decoding.top_p=0.5 'im thirsty'
Too long: => nmt translate --run learned --skip-too-long 'im one two three four five six seven'
Dataset 'english-german-both', which run => nmt prepare english-german-both.pkl --name english-german-both --tokenizer-of base; nmt evaluate
test.source.txt is missing => nmt prepare {english-german-both.pkl} --overwrite; nmt evaluate
--by-length cannot be computed|Scores by length => nmt evaluate --hypothesis few.de --reference few.de --by-length --source {few.de}
--stress cannot be computed => nmt evaluate --run {base} --stress
Received --hypothesis alone => nmt evaluate --hypothesis {few.de} --reference {few.de}
Did you mean --set decoding.precision=int8? => nmt translate --set decoding.precision={float32} 'im thirsty'
a file, and has to be a folder => rm data; nmt info
"""

CHOSEN = ("--set", "--name", "--run", "--config", "--export", "--last", "--tolerance")
"""Options that a message need not name, because the user chooses them or they precede the named option."""


def read_remedies() -> list[tuple[str, list[str]]]:
    rows = [line.split(" => ") for line in REMEDIES.splitlines() if " => " in line]
    return [(phrase, commands.split("; ")) for phrase, commands in rows]


def find_row(phrase: str) -> Row:
    rows = [row for rows in SECTIONS.values() for row in rows if any(part in row.phrase for part in phrase.split("|"))]
    assert rows, f"no row of test_messages.py has {phrase!r}"
    return rows[0]


@pytest.mark.slow
@pytest.mark.parametrize(("phrase", "commands"), read_remedies())
def test_who_follows_a_remedy_does_not_read_the_same_message(
    phrase: str, commands: list[str], trained_project: Path, tmp_path: Path
) -> None:
    row = find_row(phrase)
    project = Path(shutil.copytree(trained_project, tmp_path / "project"))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(project)
        for step in row.steps:
            if not step.startswith("& leaves"):
                take(step, patch)
        message = " ".join(run(row.command).err.split())
        assert row.phrase in message
        for command in commands:
            added = [word for word in command.split()[2:] if "{" not in word and word not in row.command]
            parts = [part for word in added if word not in CHOSEN for part in re.split(r"[.=,]", word)]
            unnamed = [part for part in parts if part not in message and part not in Config.model_fields]
            assert not unnamed or command != commands[0], f"the message does not name {unnamed}"
            typed = command.replace("{", "").replace("}", "")
            if typed.startswith("nmt "):
                assert row.phrase not in " ".join(run(typed).err.split())
            else:
                take(f"$ {typed}", patch)
