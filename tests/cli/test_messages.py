"""Every message that refuses a command: the commands that lead to it, and its key phrase.

A row of the table starts in a fresh copy of a project in which english-german-both.pkl is prepared and base.yaml
trained for two epochs. Lines with "$" are typed. The last one is the command that is refused, with exit code 2 and
nothing written; "=>" and the key phrase of its message end the row. The lines before create the conditions. Lines with
"&" arrange what a shell cannot: a lower limit, an address of no server, a lock held by another process. "& leaves PATH"
names where the refused command writes nevertheless.

messages.txt has the full texts. ``pytest tests/cli/test_messages.py --rewrite-messages`` writes it anew.
"""

import difflib
import re
import shlex
import shutil
import socket
import subprocess
import textwrap
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from conftest import ROOT, Outcome, run_nmt
from conftest import nmt_process as in_a_process
from filelock import FileLock

from nmt.data.sources.public import PublicFile  # noqa: F401 - of a row
from nmt.runtime import tf

TEXTS = Path(__file__).with_name("messages.txt")

TABLE = r"""
# --- nmt, whatever the command ---------------------------------------------------------------------------------------
$ nmt traim  => No such command 'traim'. Did you mean 'train'
$ nmt translate --bem 3 'im thirsty'  => No such option: --bem. Did you mean --beam or --n-best
$ nmt train --name x  => No such option: --name. Did you mean --run?
$ nmt train --learning-rate-scale 3  => Did you mean --set training.learning_rate_scale=3?
$ nmt tune  => Did you mean the example with Optuna in configs/README.md?
$ nmt translate --beam  => Option '--beam' requires an argument
$ nmt translate --sample=yes 'im thirsty'  => Option '--sample' does not take a value
$ nmt evaluate --resamples many  => Invalid value for '--resamples': Input should be a valid integer; received 'many'
$ nmt translate --n-best 0 'im thirsty'  => Invalid value for '--n-best': Input should be greater than or equal to 1
$ nmt plot  => Missing command
$ nmt info base  => Got unexpected extra argument(s) (base)
# Nothing is there yet.
$ rm -r checkpoints
$ nmt info  => No run is in checkpoints/ yet
$ nmt info --run bass  => There is no run 'bass' in checkpoints/ (did you mean 'base'?)
$ rm -r data
$ nmt train --run base  => There is no prepared dataset 'english-german-both'
$ rm -r data
$ nmt train  => No dataset is prepared in data/ yet
$ nmt train --run ../up  => '../up' cannot be the name of a run
# Hosts.
$ nmt train --workers 2  => Did you mean --set training.micro_batches=K, which up to K hosts share?
& variable TF_CONFIG {"cluster": {"worker": ["a:1", "b:1"]}}
$ nmt train  => TF_CONFIG is not a cluster: task is missing
& variable TF_CONFIG {"cluster": {"worker": ["a:1", "a:1"]}, "task": {"index": 0}}
$ nmt train  => TF_CONFIG has the address 'a:1' twice
& variable SLURM_STEP_NUM_TASKS 2
$ nmt train  => The variables of SLURM name no hosts: SLURM_PROCID not found
# A folder is not what it is to be.
$ rm -r data && touch data
$ printf 'one\teins\n' > pairs.tsv
$ nmt prepare pairs.tsv  => data/pairs cannot be used: data is a file, and has to be a folder

# --- nmt export, and what translates with exports ---------------------------------------------------------------------
$ nmt export --to onnx  => There is no export format 'onnx'
$ nmt export --to ctranslate2 --quantization int4  => There is no number format 'int4' (did you mean 'int8'?)
$ nmt export --to saved-model --quantization int8  => no number format 'int8' in an export to saved-model
$ nmt export --to argos --vocabulary-map  => --vocabulary-map is for ctranslate2
$ nmt export --to argos  => The model has words as tokens
$ nmt export --to argos --demo  => --demo is for bergamot
$ nmt export --to bergamot  => Run 'base' has model.decoder: attention
$ sed -i 's/encoder_norm: true/encoder_norm: false/; s/residual: true/residual: false/' checkpoints/base/config.yaml
$ nmt export --to ctranslate2  => Run 'base' has model.encoder_residual: false and model.encoder_norm: false
$ nmt export --to ctranslate2
$ nmt export --to ctranslate2  => checkpoints/base/exports/ctranslate2-float32 exists already
$ sed -i 's/tag: null/tag: bt/' checkpoints/base/config.yaml
$ nmt export --to saved-model  => There is no tag 'bt': the vocabulary has none
$ mkdir mine
$ nmt export --to ctranslate2 --output mine --overwrite  => mine exists and is not an export. --overwrite replaces
$ nmt translate --export ctranslate2-int8 'im thirsty'  => Run 'base' has no export 'ctranslate2-int8'
$ nmt export --to ctranslate2
$ nmt translate --export ctranslate2 'im thirsty'  => Its exports: ctranslate2-float32
$ nmt export --to ctranslate2
$ nmt translate --export ctranslate2-float32 --set decoding.precision=bfloat16 'im thirsty'
=> --set decoding.precision=bfloat16 is for TensorFlow
$ nmt translate --run base --export ./model 'im thirsty'  => --export ./model is a folder with a complete model
$ nmt translate --export ./model 'im thirsty'  => model holds no exported model
$ nmt export --to ctranslate2 --epoch 1
$ nmt translate --export ctranslate2-float32 --epoch 2 'im thirsty'  => received --epoch 2
$ nmt export --to ctranslate2 --output model
$ python -c "import pathlib; file = pathlib.Path('model/model.bin'); file.write_bytes(bytes(file.stat().st_size))"
$ nmt translate --export ./model 'im thirsty'  => model/model.bin has changed
$ nmt export --to ctranslate2
$ nmt evaluate --export ctranslate2-float32 --set decoding.precision=float32
=> --set decoding.precision=float32 is for TensorFlow

# --- nmt serve -------------------------------------------------------------------------------------------------------
$ nmt serve base base --port 0  => Two models translate en to de
& listen 24573
$ nmt serve --port 24573  => Port 24573 of 127.0.0.1 is in use
$ nmt serve --host 192.0.2.1  => The service cannot listen at port 5000 of 192.0.2.1: Cannot
$ nmt serve --host 'no address'  => --host is 'no address', which is not an address of this machine
$ nmt serve --glossary terms.tsv  => --glossary needs NAME=FILE
$ nmt serve --allow-origin example.org  => --allow-origin is 'example.org'. An origin is
$ nmt serve --trust-proxy proxy  => --trust-proxy is 'proxy', which is not an address
$ echo '# none yet' > keys.txt
$ nmt serve --api-keys keys.txt  => keys.txt has no API key
$ printf 'first\nsecond third\n' > keys.txt
$ nmt serve --api-keys keys.txt  => keys.txt has white space in key 2
$ mkdir other
$ echo '{"format": 1, "to": "argos", "run": "base", "epoch": 1, "quantization": "int8",' > other/export.json
$ echo '"positions": null, "nmt": "0", "files": {}}' >> other/export.json
$ nmt serve --port 0 ./other  => other is an export to argos
$ nmt serve --port 0 checkpoints/base  => checkpoints/base holds no exported model

# --- nmt prepare: the command line -----------------------------------------------------------------------------------
$ nmt prepare  => No files were given
$ nmt prepare ghost.tsv  => There is no file 'ghost.tsv'
$ nmt prepare english-german-bth.pkl  => There is no file 'english-german-bth.pkl' (did you mean
$ nmt prepare '~nosuchuser/pairs.tsv'  => There is no file '~nosuchuser/pairs.tsv'
$ echo one | tee one.en two.en one.de
$ nmt prepare one.en two.en one.de  => FILE: received 3 files without tabs
$ nmt prepare english-german-both.pkl --name 'my data'  => 'my data' cannot be the name of a dataset
$ nmt prepare english-german-both.pkl --set data.seed=7  => seed 73 before, 7 now
$ mkdir data/notes
$ nmt prepare english-german-both.pkl --name notes  => data/notes exists and is not a dataset. nmt prepare writes
$ printf 'one\teins\n' > pairs.tsv
$ nmt prepare pairs.tsv --name english-german-both  => data/english-german-both was prepared
$ nmt prepare english-german-both.pkl --name again --tokenizer-of base --set data.tokenizer=char
=> data.tokenizer is set to 'char', but --tokenizer-of requires 'word'
$ nmt prepare english-german-both.pkl --name again --languages en-xx  => --languages is 'en-xx'
$ nmt prepare english-german-both.pkl --name again --languages en-de --set data.target_language=fr
=> data.target_language is set to 'fr', but --languages requires 'de'.
$ nmt prepare english-german-both.pkl --name again --set data.source_language=Englisch
=> 'Englisch' is no language code
$ nmt prepare english-german-both.pkl --languages en-fr  => target_language 'de' before, 'fr' now
$ nmt prepare english-german-both.pkl --name new --filters score  => has no scores
$ nmt prepare english-german-both.pkl --name new --filters score --set data.score_runs=[bass]  => no run 'bass'
$ nmt prepare english-german-both.pkl --filters numbers,copys  => no filter 'copys' (did you mean 'copies'?)
$ nmt prepare english-german-both.pkl --set 'data.filters={copies: 3}'  => filter copies has the threshold 3
$ nmt prepare english-german-both.pkl --set data.filters={copies}  => filters {} before, {'copies': 0.8} now
$ printf 'one\teins\n' > pairs.tsv
$ nmt prepare pairs.tsv --filters language  => The filter language needs the languages of both sides
$ printf 'one\teins 1995\ntwo\tzwei\nthree\tdrei\n' > pairs.tsv
$ nmt prepare pairs.tsv --filters numbers  => 2 usable pairs, with 1 x filter numbers left out

# Several corpora.
$ nmt prepare english-german-both.pkl --name again --corpus train=x.tsv  => 'train' cannot be the name of a further
$ nmt prepare english-german-both.pkl --name again --corpus bt  => Corpus 'bt' is named without files
$ nmt prepare english-german-both.pkl --name again --corpus web=x.tsv --tag wed  => tag 'wed' (did you mean 'web'?)
$ nmt prepare english-german-both.pkl --name again --set 'data.corpora={bt: {tga: true}}'
=> unknown key 'data.corpora.bt.tga' (did you mean 'tag'?)
$ printf '' > bt.tsv
$ nmt prepare english-german-both.pkl --name again --corpus bt=bt.tsv  => Corpus 'bt' has no usable pair
$ printf 'im tired\tich bin mude\n' > bt.tsv
$ nmt prepare english-german-both.pkl --name again --corpus bt=bt.tsv --tag bt --tokenizer-of base
=> There is no tag 'bt': the vocabulary has none

# --- nmt prepare: pickles --------------------------------------------------------------------------------------------
$ touch empty.pkl
$ nmt prepare empty.pkl  => empty.pkl is empty
$ printf 'one\teins\n' > text.pkl
$ nmt prepare text.pkl  => text.pkl looks like text
$ echo '<!DOCTYPE html>' > page.pkl
$ nmt prepare page.pkl  => page.pkl is a web page
$ head -c 2000 data/english-german-both.pkl > half.pkl
$ nmt prepare half.pkl  => half.pkl is damaged or cut off (2000 bytes)
$ (cat data/english-german-both.pkl; echo more) > longer.pkl
$ nmt prepare longer.pkl  => longer.pkl has further bytes after the end of the pickle
$ printf 'cos\nsystem\n(S"touch executed"\ntR.' > hostile.pkl
$ nmt prepare hostile.pkl  => hostile.pkl asks to load os.system, which could run code
$ printf '\x80\x04N\x92.' > odd.pkl
$ nmt prepare odd.pkl  => odd.pkl uses the pickle instruction NEWOBJ_EX, which an array
$ python -c "open('long.pkl', 'wb').write(b'\x80\x04' + b'N' * 200 + b'.')"
$ nmt prepare long.pkl  => long.pkl has more than 100 pickle instructions
$ python -c "import numpy as np, pickle; pickle.dump(np.ones((5, 2)), open('floats.pkl', 'wb'))"
$ nmt prepare floats.pkl  => floats.pkl holds an array of dtype 'f8' instead of strings
$ python -c "import numpy as np, pickle; pickle.dump(np.array([['a', 'b']], object), open('objects.pkl', 'wb'))"
$ nmt prepare objects.pkl  => objects.pkl holds an array of Python objects (dtype 'O8')
$ python -c "import numpy as np, pickle; pickle.dump(np.array([['\ud800', 'b']]), open('surrogate.pkl', 'wb'))"
$ nmt prepare surrogate.pkl  => surrogate.pkl holds 0xd800, which is not the code of a Unicode
$ sed 's/M,\x01K\x02/M,\x02K\x02/' data/english-german-both.pkl > shape.pkl
$ nmt prepare shape.pkl  => shape.pkl is damaged
$ gzip data/english-german-both.pkl
& nmt.data.sources.pickled_array.MAX_BYTES = 1000
$ nmt prepare english-german-both.pkl.gz --name again  => data/english-german-both.pkl.gz has more than 1000 bytes

# --- nmt prepare: text -----------------------------------------------------------------------------------------------
$ printf 'one\teins\ntwo zwei\nthree\tdrei\n' > pairs.tsv
$ nmt prepare pairs.tsv  => pairs.tsv, line 2 has no tab: 'two zwei'
$ printf 'one\teins\tx\ntwo\tzwei\n' > pairs.tsv
$ nmt prepare pairs.tsv --set data.target_column=3  => pairs.tsv, line 2 has 2 columns: 'two\tzwei'
$ printf 'english\tgerman\none\teins\n' > pairs.tsv
$ nmt prepare pairs.tsv --set data.source_column=english --set data.target_column=deutsch
=> pairs.tsv, line 1 names the columns 'english, german'
$ printf 'one\teins\ntwo\tzwei\tdrei\nthree\tdrei\nfive\tf\tx\n' > pairs.tsv
$ nmt prepare pairs.tsv  => pairs.tsv: 2 of the first 4 lines have more columns than most
$ printf 'one,eins\n"two,zwei\nthree,drei\n' > pairs.csv
$ nmt prepare pairs.csv  => pairs.csv, line 2 is no row of CSV
$ printf 'one\n' > pairs.tsv
$ nmt prepare pairs.tsv  => A file with the sentences of one language needs a second file
$ printf 'big\tgro\xdf\n' > pairs.tsv
$ nmt prepare pairs.tsv  => Read as cp1252 it has 'big\tgroß'
$ printf '%%PDF-1.7\n' > pairs.tsv
$ nmt prepare pairs.tsv  => pairs.tsv is a PDF document
$ mkdir xl; echo x > xl/sheet; python -m zipfile -c book.csv xl
$ nmt prepare book.csv  => book.csv is an Excel workbook
$ printf 'one\teins\n' > pairs.tsv; printf 'one\n' > one.en
$ nmt prepare pairs.tsv one.en  => FILE: pairs.tsv holds pairs, and one.en does not
$ printf 'one\teins\n' > pairs.tsv
$ nmt prepare pairs.tsv pairs.tsv  => FILE names pairs.tsv 2 times
$ mkdir corpus; printf 'one\n' > corpus/a.txt
$ nmt prepare corpus  => corpus/a.txt, line 1 has no tab
$ mkdir -p saved/train saved/test; echo '{}' > saved/dataset_dict.json
$ nmt prepare saved  => Give saved/train --test saved/test
# JSON Lines
$ printf '{"a": "one", "b": "eins"}\n' > pairs.jsonl
$ nmt prepare pairs.jsonl  => pairs.jsonl, line 1 has the fields a, b
$ printf '[{"a": "one"' > pairs.json
$ nmt prepare pairs.json  => pairs.json is not JSON
$ printf '{"source": "one", "target": "eins"}\n' > pairs.jsonl
$ nmt prepare pairs.jsonl --set data.source_column=1 --set data.target_column=2  => data.source_column is 1
# TMX
$ printf '<tu><tuv lang="en"><seg>one</seg></tuv><tuv lang="de"><seg>eins</seg></tuv></tu>' > unit
$ printf '<tu><tuv lang="en"><seg>one</seg></tuv><tuv lang="fr"><seg>un</seg></tuv></tu>' > other
$ (echo '<tmx>'; cat unit other; echo '</tmx>') > pairs.tmx
$ nmt prepare pairs.tmx  => pairs.tmx, unit 2 has segments in en, fr
$ printf '<tmx><tu><tuv lang="en"><seg>one</seg></tuv></tu></tmx>' > pairs.tmx
$ nmt prepare pairs.tmx  => pairs.tmx has segments in en, and no unit has two languages
$ printf '<tmx>\n<tu><tuv lang="en"><seg>black & white</seg></tuv></tu></tmx>' > pairs.tmx
$ nmt prepare pairs.tmx  => pairs.tmx, line 2, character 32 is not well-formed XML
$ printf '<tmx><tu><tuv lang="en"><seg>one</seg></tuv><tuv lang="de"><seg>eins</seg></tuv>' > pairs.tmx
$ printf '<tuv lang="fr"><seg>un</seg></tuv></tu></tmx>' >> pairs.tmx
$ nmt prepare pairs.tmx  => pairs.tmx has segments in de, en, fr in one unit
$ printf '<!DOCTYPE tmx [\n<!ENTITY a "aaaa">\n]>\n<tmx>&a;</tmx>' > pairs.tmx
$ nmt prepare pairs.tmx  => they could grow without bound or read other files
& nmt.data.sources.memories.xml_reader.XmlReader.MAX_UNIT = 20
$ printf '<tmx><tu>\n<tuv lang="en"><seg>one two three four five six</seg></tuv>\n</tu></tmx>' > pairs.tmx
$ nmt prepare pairs.tmx  => the unit is longer than 20 characters, the limit of a unit
# Catalogues
$ printf 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-7"\n' > pairs.po
$ nmt prepare pairs.po  => pairs.po is in the charset 'UTF-7', which nmt does not read
& nmt.data.sources.memories.catalogue.MAX_ENTRY = 20
$ printf 'msgid "one two three four five six"\nmsgstr ""\n' > pairs.po
$ nmt prepare pairs.po  => pairs.po, line 1: the entry is longer than 20 characters
$ echo one > a.txt; tar -cf pairs.tar a.txt
$ nmt prepare pairs.tar  => pairs.tar holds a.txt. nmt reads an archive as a whole if
# Archives
$ echo one > a.txt; echo eins > b.txt; python -m zipfile -c two.zip a.txt b.txt
$ nmt prepare two.zip  => two.zip holds a.txt, b.txt
$ echo one > a.txt; echo eins > b.txt; python -m zipfile -c two.zip a.txt b.txt
$ nmt prepare two.zip/c.txt  => There is no member 'c.txt' in two.zip (did you mean 'b.txt'?)
$ python -m zipfile -c none.zip
$ nmt prepare none.zip  => none.zip holds no text file
$ echo one > a.txt; zip -qP secret s.zip a.txt
$ nmt prepare s.zip  => s.zip/a.txt cannot be unpacked: File 'a.txt' is encrypted

# --- nmt prepare: too little, too long -------------------------------------------------------------------------------
$ rm -r data; printf 'one\teins\ntwo\tzwei\n' > pairs.tsv
$ nmt prepare pairs.tsv  => pairs.tsv has 2 usable pairs
$ printf 'one\teins\none\tein\none\teine\n' > pairs.tsv
$ nmt prepare pairs.tsv  => the corpus has 3 pairs with 1 distinct source
$ printf 'one\teins\ntwo\tzwei\nthree\tdrei\nfour\tvier\n' > pairs.tsv; touch none.tsv
$ nmt prepare pairs.tsv --test none.tsv  => none.tsv leaves the test split empty. Each of
$ printf 'one\teins\ntwo\tzwei\nthree\tdrei\nfour\tvier\n' > pairs.tsv
$ nmt prepare pairs.tsv --validation pairs.tsv --test pairs.tsv  => 4 x validation source that is in the test
$ printf 'one two\teins\ntwo two\tzwei\nthree two\tdrei\nfour two\tvier\n' > pairs.tsv
$ nmt prepare pairs.tsv --set data.max_tokens=1  => all of its pairs exceed data.max_tokens 1
$ printf 'one two\teins\ntwo two\tzwei\nthree two\tdrei\nfour two\tvier\n' > pairs.tsv
$ nmt prepare pairs.tsv --set data.tokenizer=subword --set data.vocabulary_size=20
=> A subword vocabulary of 20 ids is too small
& nmt.data.pair_store.shutil.disk_usage = lambda folder: shutil._ntuple_diskusage(0, 0, 10)
$ nmt prepare english-german-both.pkl --name again  => The disk of data is too small: 10 bytes are free after 11,814

# --- configurations --------------------------------------------------------------------------------------------------
$ nmt train --config bas.yaml  => There is no configuration 'bas.yaml' (did you mean 'base.yaml'?)
$ printf 'model:\n  haeds: 4\n' > my.yaml
$ nmt train --config my.yaml  => unknown key 'model.haeds' (did you mean 'heads'?)
$ printf 'training: {epochs: 0, batch_size: many, dropout: 0.1}\nmodle: {}\n' > my.yaml
$ nmt train --config my.yaml  => Change the value, or leave the key out. my.yaml, line 1
$ printf 'epochs: 3\nmodel: 7\nspeed: high\n' > my.yaml
$ nmt train --config my.yaml  => model is 7, but must be a section of keys
$ printf 'data: {dataset: 7}\n' > my.yaml
$ nmt train --config my.yaml  => data.dataset is 7, but must be a valid string, in quotes
$ printf 'training:\n  epochs: 3\n  epochs: 4\n' > my.yaml
$ nmt train --config my.yaml  => my.yaml, line 3 sets training.epochs again
$ printf 'model: [1, 2' > my.yaml
$ nmt train --config my.yaml  => my.yaml, line 1, column 13 is not valid YAML: expected ','
$ printf 'model: &m {heads: 4}\ntraining: *m\n' > my.yaml
$ nmt train --config my.yaml  => my.yaml, line 2, column 11 is not valid YAML: the alias *m
$ printf 'training: {epochs: 1234567890123456789012345678901234567890123}\n' > my.yaml
$ nmt train --config my.yaml  => my.yaml, line 1, column 20 is not valid YAML: the integer
$ echo 'just text' > my.yaml
$ nmt train --config my.yaml  => my.yaml holds no sections, but a str
$ printf 'model: {architecture: "f\xfcnf"}\n' > my.yaml
$ nmt train --config my.yaml  => it holds the byte 0xfc
$ python -c "open('my.yaml', 'w').write('# much\n' * 30_000)"
$ nmt train --config my.yaml  => my.yaml is too long
$ python -c "open('my.yaml', 'w').write('model: ' + 5_000 * '[')"
$ nmt train --config my.yaml  => my.yaml is not valid YAML: it is nested too deeply
$ printf 'training:\n  pack: maybe\n' > my.yaml
$ nmt train --config my.yaml  => training.pack, now called training.remove_padding, is 'maybe'
$ printf 'training:\n  pack: true\n  remove_padding: true\n' > my.yaml
$ nmt train --config my.yaml --set training.epochs=3  => remove_padding is set twice, also by its older name
$ printf 'training:\n  augment:\n    uper: 0.1\n' > my.yaml
$ nmt train --config my.yaml  => unknown variant 'uper' (did you mean 'upper'?)
$ printf 'training:\n  augment:\n    upper: 0.9\n' > my.yaml
$ nmt train --config my.yaml --set training.augment.title=0.2  => The shares of variants must add up to at most 1
$ nmt train --set epochs=1  => --set 'epochs=1' has no section, key and value
$ nmt train --set training.epochs=[1  => --set 'training.epochs=[1' has a value that is not valid YAML
$ nmt train --set training.epochs=0  => training.epochs is 0, but must be greater than or equal to 1
$ nmt train --set model.epochs=1  => 'training.epochs')
$ nmt prepare english-german-both.pkl --set data.train_share=0.9  => train_share is 0.9, validation_share is 0.1
$ nmt train --config base.yaml --set model.heads=5  => heads is 5 and d_model is 32. heads must divide d_model unless
$ nmt train --config base.yaml --set model.positions=rotary --set model.head_size=5
=> positions is rotary, heads is 4
$ nmt train --config base.yaml --set model.word_embedding=sinusoidal  => word_embedding is sinusoidal
$ nmt train --config base.yaml --set model.share_decoder_norm=true --set model.norm_placement=pre
=> share_decoder_norm is true and norm_placement is pre
$ echo 'model: {architecture: recurrent, bidirectional: true, encoder_width: 300}' > rnn.yaml
$ nmt train --config rnn.yaml  => first_state is final, width is 512, encoder_width is 300
$ echo 'model: {architecture: recurrent, attention: none, window: local-p}' > rnn.yaml
$ nmt train --config rnn.yaml  => window is local-p and attention is none
$ echo 'model: {word_embedding: sinusoidal, tie_embeddings: none}' > fixed.yaml
$ nmt train --config fixed.yaml --set training.initial_embeddings=cooccurrence  => training.initial_embeddings
$ nmt train --config tiny.yaml --set training.r_drop=5 --set model.dropout=0  => training.r_drop is 5.0, but must be 0
$ printf 'model: {architecture: recurrent, width: 8}\ntraining: {epochs: 1}\n' > rnn.yaml
$ nmt train --config rnn.yaml
$ nmt plot positions --run rnn  => Choose another figure, or a run with a Transformer
$ printf 'model: {architecture: recurrent, width: 8}\ntraining: {epochs: 1}\n' > rnn.yaml
$ nmt train --config rnn.yaml
$ nmt train --config base.yaml --run rnn --allow-changes  => A run keeps its architecture
$ printf 'model: {architecture: recurrent, width: 8}\ntraining: {epochs: 1, optimizer: muon}\n' > rnn.yaml
$ nmt train --config rnn.yaml
$ nmt train --config rnn.yaml --set training.optimizer=adam --allow-changes  => Run 'rnn' trains with optimizer 'muon'
$ nmt train --config base.yaml --set training.best_by=bleu  => best_by is bleu and decode_validation is 0
$ nmt train --config base.yaml --set training.peak_learning_rate=0.001  => schedule is noam and peak_learning_rate
$ nmt train --config base.yaml --set training.schedule=cosine  => schedule is cosine and peak_learning_rate is null
$ nmt train --set training.schedule=cosine --set training.peak_learning_rate=1 --set training.learning_rate_scale=2
=> schedule is cosine and learning_rate_scale is 2
$ nmt train --set training.schedule=linear --set training.peak_learning_rate=1e-4 --set training.final_learning_rate=1
=> final_learning_rate is 1 and peak_learning_rate is 0.0001

# --- nmt train -------------------------------------------------------------------------------------------------------
$ nmt train --minutes 0  => --minutes is 0
$ nmt train --minutes 5 --set training.epochs=3  => --minutes 5 chooses the number of epochs
& nmt.recipes.budget.measure_speed = lambda *_: __import__('nmt.recipes.budget').recipes.budget.Speed(0.1, 900, 0.0)
$ nmt train --config base.yaml --run new --minutes 1  => --minutes is 1, which has no room for an epoch on dataset
$ rm checkpoints/base/config.yaml
$ nmt train --config base.yaml  => checkpoints/base exists already
$ nmt train --config base.yaml --set model.d_ff=32  => its weights have other names or shapes (model.d_ff: 64 before
$ nmt train --config base.yaml --set training.ema_decay=0.9 --allow-changes  => it has no moving averages
$ nmt train --config base.yaml --set model.heads=2  => model.heads: 4 before, 2 now
$ sed -i 's/^training:/training:\n  xla: true/' checkpoints/base/config.yaml
$ nmt train --run base  => training.xla: True, a setting of older versions. The step is not compiled
$ nmt prepare english-german-both.pkl --name other --set data.seed=7
$ nmt train --run base --dataset other  => Run 'base' and dataset 'other' have different tokenizers
$ nmt prepare english-german-both.pkl --name other --set data.seed=7 --tokenizer-of base
$ nmt train --run base --dataset other  => dataset: 'english-german-both' before, 'other' or new content
$ nmt train --run new --set model.tie_embeddings=all  => The dataset has 13 ids on the source side and 14 on the target
$ nmt train --run new --set model.positions=learned --set model.max_positions=5  => this model reads at most 5
$ nmt train --run new --from base:9  => Run 'base' has no weights of epoch '9'
$ nmt train --config base.yaml --run new --set training.batch_size=auto  => training.batch_size is 'auto', but must be
& nmt.training.optimization.update.Update.take = lambda *_: (_ for _ in ()).throw(exhausted())
$ nmt train --config base.yaml --run new  => Memory ran out before training
& nmt.decoding.tensorflow_engine.TensorFlowEngine.search_batch = lambda *_, **__: (_ for _ in ()).throw(exhausted())
$ nmt translate 'im thirsty'  => Memory ran out: the longest sentence, 'im thirsty', has 2 tokens
& nmt.decoding.tensorflow_engine.TensorFlowEngine.cross_attention = lambda *_: (_ for _ in ()).throw(exhausted())
$ nmt translate --json 'im thirsty'  => Memory ran out. It must hold the model and a batch
& nmt.training.estimate.free_bytes = lambda folder: 1_000
$ nmt train --config base.yaml --run new  => Not enough disk space
& lock checkpoints/base/lock process 4711 on atlas, since 2026-03-01T09:30:00+01:00
$ nmt train --run base --set training.epochs=3  => Run 'base' is in use by process 4711 on atlas, since
$ rm -r checkpoints/base/state/*16 && sed -i s/metrics/metric/ checkpoints/base/state/*/state.json
$ nmt train --run base --set training.epochs=3  => its content is not as it was saved
$ rm -r checkpoints/base/state/*16
$ sed -i 's/"format": [0-9]*/"format": 99/' checkpoints/base/state/*/state.json
$ nmt train --run base --set training.epochs=3  => checkpoints/base/state/step-00000008/state.json has format 99
$ rm -r checkpoints/base/state/*16 && rm checkpoints/base/state/*/optimizer.safetensors
$ nmt train --run base --set training.epochs=3  => Run 'base' cannot resume
$ sed -i 's/d_ff: 64/d_ff: 32/' checkpoints/base/config.yaml
$ nmt train --run base --set training.epochs=3  => checkpoints/base/state/step-00000016 is the state of another
$ rm -r checkpoints/base/state
$ nmt train --run base --set training.epochs=3  => it has weights, but checkpoints/base/state holds no state
# The dataset
$ truncate -s 100 data/english-german-both/train.source.tokens.npy
$ nmt train --run new  => the SHA-256 of data/english-german-both/train.source.tokens.npy
$ echo > data/english-german-both/manifest.json
$ nmt train --run new  => data/english-german-both/manifest.json is damaged: Expecting
$ sed -i 's/"format": [0-9]*/"format": 99/' data/english-german-both/manifest.json
$ nmt train --run new  => Manifest data/english-german-both/manifest.json has format 99
$ sed -i 's/"validation": {/"trial": {/' data/english-german-both/manifest.json
$ nmt train --run new  => splits has the keys train, trial, test instead of train
$ sed -i '/"splits"/,$ s/"source":/"english":/' data/english-german-both/manifest.json
$ nmt train --run new  => counts have the keys english, target instead of source, target
& nmt.storage.json_file.MAX_JSON = 1000
$ nmt train --run new  => data/english-german-both/manifest.json is too long
$ nmt prepare english-german-both.pkl --name characters --set data.tokenizer=char
$ nmt train --run new --from base --dataset characters  => Run 'base' and dataset 'characters' have different tokenizers
# Corpora and stages
$ nmt train --run new --set 'training.corpora={orignal: 2}'  => names the corpus 'orignal' (did you mean 'original'?)
$ nmt train --run new --set 'training.corpora={original: -1}'  => training.corpora.original is -1, but must be greater
$ nmt train --run new --set 'training.corpora={original: 0}'  => training.corpora leaves epoch 1 without a pair
$ nmt train --run new --set 'training.stages=[{corpora: {original: 1}}, {corpora: {original: 2}}]'
=> until_epoch is null, null. It must rise from stage to stage
$ nmt train --run new --set 'training.stages=[{corpora: {original: 1}}]' --set 'training.corpora={original: 2}'
=> Each stage has its own corpora
$ nmt train --run new --set decoding.tag=bt  => There is no tag 'bt'
# A run that diverges
$ sed -i 's/training: {/training: {precision: float32, /' configs/base.yaml
& leaves checkpoints/new
$ nmt train --run new --config base.yaml --set training.learning_rate_scale=1e30 --set training.skip_nonfinite=2
=> step 5, batch 5 of epoch 1, after 3 skipped steps
$ sed -i 's/batch_size: 32/batch_size: 1000, precision: float32/' configs/base.yaml
& leaves checkpoints/new
$ nmt train --run new --config base.yaml --set training.learning_rate_scale=1e30
=> Training diverged: validation loss after step 1; nothing has been saved
$ nmt info --run base --config base.yaml  => nmt info describes either a run or a configuration
$ nmt info --set model.d_model=8  => --set changes the model of a configuration

# --- nmt runs --------------------------------------------------------------------------------------------------------
$ nmt runs --sort scor  => 'scor' is not one of 'name', 'date', 'score'

# --- nmt plot, nmt info ----------------------------------------------------------------------------------------------
$ nmt plot loss  => No such command 'loss'. Did you mean 'losses'
$ echo mine > mine.png
$ nmt plot losses --output mine.png  => mine.png exists and is not a figure of nmt
$ nmt plot losses --output curve.xyz  => The figure cannot be written to 'curve.xyz'
$ nmt plot bleu  => Run 'base' has no BLEU to draw
$ rm checkpoints/base/metrics.jsonl
$ nmt plot losses  => The first point of a curve comes after the first epoch
$ sed -i '3 s/loss/lost/' checkpoints/base/metrics.jsonl
$ nmt plot losses  => Each line of a metrics file is a record that nmt train wrote
$ sed -i '1 s/2/3/' checkpoints/base/metrics.jsonl
$ nmt plot losses --run base  => checkpoints/base/metrics.jsonl has format 3
$ rm checkpoints/base/dataset.json
$ nmt info  => A dataset's manifest is missing
$ sed -i 's/positions: sinusoidal/positions: learned/' checkpoints/base/config.yaml
$ nmt plot positions  => Restore a copy of it, or train that epoch again
# Figures of the lesson
$ nmt plot position-matrix --width 7  => --width must be even
$ nmt plot sinusoids --base nan  => --base must be greater than 1 and at most 1,000,000,000,000
$ nmt plot position-matrix --length 100000 --width 512  => --length 100000 times --width 512 is 51,200,000 values
$ nmt plot position-similarity --length 5000 --width 8  => --length must be at most 4096 to compare positions
$ nmt plot position-columns --length 50 --position 50  => --position must be from 0 to 49; received 50
$ nmt plot position-table ' '  => A table has from 1 to 32 rows, one a word
$ nmt plot position-table --width 18  => at most 16 columns; received 4 words and a width of 18
$ nmt plot masks ''  => The sentence has 0 words and 2 tokens of padding
$ nmt plot words thirst  => 'thirst' is not a token of the source vocabulary (did you mean
$ nmt plot words --neighbors 1 thirsty  => A map needs at least 3 words
$ sed -i 's/word_embedding: trained/word_embedding: sinusoidal/' checkpoints/base/config.yaml
$ sed -i 's/tie_embeddings: output/tie_embeddings: none/' checkpoints/base/config.yaml
$ nmt plot words  => Run 'base' has fixed word embeddings (model.word_embedding
$ cp checkpoints/base/tokenizer.target.json checkpoints/base/tokenizer.source.json
$ nmt plot words  => checkpoints/base/weights/epoch-0002.safetensors has 13 word
# Several runs, speed, scores
$ nmt plot compare base --metric los  => --metric is 'los', but must be one of loss, accuracy, bleu
$ nmt plot compare base --metric bleu --by steps  => Run 'base' has no validation BLEU by steps
$ rm checkpoints/base/metrics.jsonl
$ nmt plot speed  => Run 'base' has no times to draw
$ echo '{"format": 1}' > scores.json
$ nmt plot by-length scores.json --run base  => --run has no effect
$ echo '{"format": 1}' > scores.json
$ nmt plot by-length scores.json  => scores.json is not an evaluation
$ echo 'ich bin durstig' > a.de
$ cp a.de b.de
$ echo 'from nmt.evaluation.evaluate import evaluate' > made.py
$ echo 'found = evaluate([], ["a.de"], references=["b.de"])' >> made.py
$ echo 'open("scores.json", "w").write(found.record.model_dump_json())' >> made.py
$ python -c "exec(open('made.py').read(), {})"
$ nmt plot by-length scores.json  => scores.json has no scores by source length. Make it with
# Attention
$ nmt plot alignment 'im thirsty'  => Did you mean nmt plot attention --head mean?
$ nmt plot attention '?!'  => Sentence '?!' has no words after normalization
$ nmt plot attention --layer 0 'im thirsty'  => The attention of run 'base' has no layer '0'
$ printf 'model: {architecture: recurrent, width: 8, attention: none}\ntraining: {epochs: 1}\n' > configs/plain.yaml
$ nmt train --config plain.yaml
$ nmt plot attention --run plain 'im thirsty'  => This model of architecture 'recurrent' has no attention
$ nmt plot attention --target '?!' 'im thirsty'  => Translation '?!' has no words after normalization

# --- nmt import ------------------------------------------------------------------------------------------------------
$ mkdir model
$ nmt import model  => model has neither config.json
$ nmt import model --run base  => checkpoints/base exists already
$ mkdir model && echo '{"model_type": "m2m_100"}' > model/config.json
$ nmt import model  => model/config.json has model_type: m2m_100

# --- nmt tokens ------------------------------------------------------------------------------------------------------
$ nmt tokens --run base --dataset english-german-both 'im thirsty'  => Tokenizers belong to a run or to a dataset

# --- nmt samples, nmt average ----------------------------------------------------------------------------------------
$ sed -i /samples/d checkpoints/base/metrics.jsonl
$ nmt samples  => Run 'base' has no sample translations
$ nmt average  => received neither
$ nmt average --last 2 --epochs 1,2  => Choose epochs with --last N or --epochs 12-16,20
$ nmt average --epochs 2  => received --epochs 2
$ nmt average --epochs 1-4  => Run 'base' does not have the weights of epochs 1-4
$ nmt train --config base.yaml --run wide --set model.d_ff=128 --set training.epochs=1
$ cp checkpoints/wide/weights/epoch-0001.safetensors checkpoints/base/weights/epoch-0002.safetensors
$ nmt average --run base --last 2  => Only weights of one model can be averaged
$ nmt average --run base+wide  => received --run base+wide
$ nmt average --run base --name both --last 2  => leave --name out
$ nmt average --run base:1+base:1 --name base  => checkpoints/base exists already
$ cp -r checkpoints/base checkpoints/wide
$ sed -i 's/ d_ff: [0-9]*/ d_ff: 128/' checkpoints/wide/config.yaml
$ nmt average --run base+wide --name both  => Runs 'base' and 'wide' differ in model.d_ff
$ nmt average --run base:1+base:2 --name both
$ nmt train --run both  => Start another run from its weights with --from both

# --- nmt synthesize --------------------------------------------------------------------------------------------------
$ nmt synthesize ghost.en --name bt  => There is no file 'ghost.en'
$ nmt synthesize ghost.en --name 'my pairs'  => 'my pairs' cannot be the name of a file of pairs
$ echo 'im one' > mono.en && touch data/bt.jsonl.gz
$ nmt synthesize mono.en --name bt  => data/bt.jsonl.gz exists already
$ echo 'im one' > mono.en
$ nmt synthesize mono.en --name bt --export fast  => Run 'base' has no export 'fast'
$ echo 'im one' > mono.en && mkdir data/.bt.synthesis && echo '{"format": 1}' > data/.bt.synthesis/state.json
& leaves data/.bt.synthesis/lock
$ nmt synthesize mono.en --name bt --export none  => data/bt.jsonl.gz was begun with other settings: input
$ echo 'im one' > mono.en && mkdir data/.bt.synthesis && echo '{"format": 99}' > data/.bt.synthesis/state.json
& leaves data/.bt.synthesis/lock
$ nmt synthesize mono.en --name bt --export none  => data/.bt.synthesis/state.json has format 99
$ echo 'im one' > mono.en && printf 'kind: chat\nwher: x\n' > chat.yaml
$ nmt synthesize mono.en --name bt --teacher chat.yaml  => chat.yaml, line 2: a teacher has no key 'wher'
$ echo 'im one' > mono.en
$ nmt synthesize mono.en --name bt --teacher libre:x  => --teacher libre:x is neither a file nor KIND:WHERE
$ echo 'im one' > mono.en
$ nmt synthesize mono.en --name bt --teacher libretranslate:http://127.0.0.1:1  => Add --from en and --to de
$ echo 'im one' > mono.en && mkdir nllb
$ nmt synthesize mono.en --name bt --teacher ctranslate2:nllb --from en --to de  => CTranslate2 cannot load nllb

# --- nmt translate ---------------------------------------------------------------------------------------------------
$ nmt translate --set decoding.tag=bt 'im thirsty'  => There is no tag 'bt': the vocabulary has none
$ cp -r checkpoints/base checkpoints/other && echo ' ' >> checkpoints/other/tokenizer.source.json
$ nmt translate --run base --run other 'im thirsty'  => Runs 'base' and 'other' have different tokenizers
$ nmt translate --run base --run base:1 --export fast 'im thirsty'  => --export fast translates alone; received 2 runs
$ nmt translate --epoch bets 'im thirsty'  => Run 'base' has no weights of epoch 'bets' (did you mean 'best'?)
$ nmt translate --epoch average 'im thirsty'  => Run 'base' has no averaged weights
$ rm -r checkpoints/base/weights checkpoints/base/metrics.jsonl
$ nmt translate 'im thirsty'  => Run 'base' has not finished an epoch yet
$ nmt translate --input data  => data cannot be read: Is a directory
$ nmt translate --input in.txt 'im thirsty'  => Sentences are either arguments or lines of --input
$ nmt translate --input page.html  => Give --output FILE.html for its translation
$ nmt translate --input in.tsv --output out.tsv  => --output is for a document of --input
$ nmt translate --output out.html 'im thirsty'  => --output is for a document of --input
$ printf '<p>im thirsty' > page.html
$ nmt translate --input page.html --output page.html  => A command never replaces its own input
$ nmt translate --input page.html --output page.txt  => the document page.html keeps its format
$ nmt translate --input page.html --output out.html --n-best 2 --beam 2  => --n-best is for lines
$ nmt translate --input messages.pot  => Give --output FILE.po for its translation
$ nmt translate --input page.html --output out.html --fuzzy  => --fuzzy is for a gettext catalogue
$ nmt translate --input absent.html --output out.html  => There is no document 'absent.html'
$ printf '\377' > latin.srt
$ nmt translate --input latin.srt --output out.srt  => latin.srt, line 1 is not UTF-8
$ printf PK > forged.docx
$ nmt translate --input forged.docx --output out.docx  => forged.docx is not a Word document
$ nmt translate --n-best 2 'im thirsty'  => --n-best 2 needs a beam of at least 2
$ nmt translate --set decoding.precision=int8 'im thirsty'  => decoding.precision must be 'auto', 'float32'
$ nmt translate --precision int8 'im thirsty'  => Did you mean --set decoding.precision=int8?
$ nmt translate --set model.heads=2 'im thirsty'  => --set model.heads is not about search
$ nmt translate --set decoding.beam=2 'im thirsty'  => section decoding has no key 'beam' (did you mean 'beam_size'?)
$ nmt translate --beam 2 --set decoding.beam_size=2 'im thirsty'  => set the same key
$ nmt translate --alignment 'im thirsty'  => Did you mean --json?
$ nmt evaluate --set decoding.top_k=2  => is for sampling, and this command searches
$ nmt translate --sample --set decoding.top_p=1.5 'im thirsty'  => decoding.top_p must be less than or equal to 1
$ nmt translate --set decoding.top_p=0.5 'im thirsty'  => --set decoding.top_p is for sampling
$ nmt translate --sample --beam 2 'im thirsty'  => --sample draws words instead of searching
$ nmt translate --beam 1 --set decoding.length_penalty=1 'im thirsty'
=> --set decoding.length_penalty needs beam search
$ nmt translate --score --beam 2 'im thirsty'  => --score scores given translations without a search
$ printf 'im thirsty\tich bin durstig\nim thirsty\n' > pairs.txt
$ nmt translate --score --input pairs.txt  => paste SOURCES TRANSLATIONS
$ nmt translate --glossary terms.tsv --sample 'im thirsty'  => draws words instead of searching; received --glossary
$ printf 'thirsty\tdurstig\nthirsty\tich\n' > terms.tsv
$ nmt translate --glossary terms.tsv 'im thirsty'  => terms.tsv, line 2 repeats the term 'thirsty' of terms.tsv, line 1
$ printf 'thirsty durstig\n' > terms.tsv
$ nmt translate --glossary terms.tsv 'im thirsty'  => terms.tsv, line 1 has no term with a translation
$ printf 'thirsty\tmüde\n' > terms.tsv
$ nmt translate --glossary terms.tsv 'im thirsty'  => terms.tsv, line 1 has the word
$ nmt translate --prefix 'ich xyz' 'im thirsty'  => Prefix 'ich xyz' contains the word 'xyz', which the model never saw
$ nmt train --config base.yaml --run learned --set model.positions=learned --set model.max_positions=8
$ nmt translate --run learned --ordinary-text none 'im one two three four five six seven'  => Too long: 'im one two
# A run that is damaged
$ truncate -s 1000 checkpoints/base/weights/epoch-0002.safetensors
$ nmt translate --epoch 2 'im thirsty'  => checkpoints/base/weights/epoch-0002.safetensors is damaged
$ printf x | dd of=checkpoints/base/weights/epoch-0002.safetensors bs=1 seek=20000 conv=notrunc status=none
$ nmt translate --epoch 2 'im thirsty'  => its content does not match its stored SHA-256
$ sed -i 's/d_ff: 64/d_ff: 32/' checkpoints/base/config.yaml
$ nmt translate 'im thirsty'  => checkpoints/base/weights/epoch-0002.safetensors does not hold
$ sed -i 's/decoder_layers: 1/decoder_layers: 2/' checkpoints/base/config.yaml
$ nmt translate 'im thirsty'  => the file has no decoder_2/cross_attention/key/bias, the model
$ sed -i 's/encoder_layers: 1/encoder_layers: 1000/' checkpoints/base/config.yaml
$ nmt translate 'im thirsty'  => the file has no encoder_10/attention/key/bias, the model
$ rm checkpoints/base/tokenizer.source.json
$ nmt translate 'im thirsty'  => A tokenizer is missing
$ sed -i 's/"im"/"one"/' checkpoints/base/tokenizer.source.json
$ nmt translate 'im thirsty'  => its vocabulary of words holds a word twice
$ echo '{"kind": "subword", "normalization": "nfkc", "algorithm": "bpe", "model_sha256": ""}' > subword
$ mv subword checkpoints/base/tokenizer.source.json
$ nmt translate 'im thirsty'  => checkpoints/base/tokenizer.source.model is missing
$ echo model > checkpoints/base/tokenizer.source.model
$ cd checkpoints/base; echo '{"kind": "subword", "normalization": "nfkc", "algorithm": "bpe",' > tokenizer.source.json
$ cd checkpoints/base; echo '"model_sha256": "'$(sha256sum *.model | cut -c-64)'"}' >> tokenizer.source.json
$ nmt translate 'im thirsty'  => checkpoints/base/tokenizer.source.model cannot be used
$ seq 100 | sed 's/^/im /' > text
$ python -c "from sentencepiece import *; SentencePieceTrainer.train(input='text', model_prefix='x', vocab_size=20)"
$ mv x.model checkpoints/base/tokenizer.source.model
$ cd checkpoints/base; echo '{"kind": "subword", "normalization": "nfkc", "algorithm": "bpe",' > tokenizer.source.json
$ cd checkpoints/base; echo '"model_sha256": "'$(sha256sum *.model | cut -c-64)'"}' >> tokenizer.source.json
$ nmt translate 'im thirsty'  => checkpoints/base/tokenizer.source.model cannot be used

# --- nmt evaluate ----------------------------------------------------------------------------------------------------
$ nmt evaluate --metric blue  => There is no metric 'blue' (did you mean 'bleu'?)
$ nmt evaluate --tokenize 13  => There is no tokenization '13' (did you mean '13a'?)
$ nmt evaluate --metric chrf --tokenize char  => --tokenize char has no effect on chrf
$ nmt evaluate --report scores.md  => The report cannot be written to 'scores.md'
$ printf 'eins\n' > few.de
$ nmt evaluate --hypothesis few.de --reference few.de --by-length  => Scores by length cannot be computed
$ nmt evaluate --hypothesis few.de --reference few.de --stress  => --stress cannot be computed
$ nmt evaluate --hypothesis few.de --reference few.de --glossary a.tsv  => --glossary cannot be computed
$ nmt evaluate --hypothesis few.de --reference few.de --calibrate  => --calibrate is for the translations of one run
$ nmt evaluate --run base --run base:1 --output out.txt  => --output was given with base, base:1
$ echo eins > few.de
$ nmt evaluate --output few.de  => few.de exists already. It is never overwritten
$ nmt evaluate --reference few.de --source few.de --output few.de  => A command never replaces its own input
$ nmt evaluate --output a.html --report a.html  => --output and --report are both a.html
$ echo mine > mine.html
$ nmt evaluate --report mine.html  => mine.html exists and is not a report of nmt
$ nmt evaluate --run base --run base  => System 'base' was given 2 times
$ nmt evaluate --hypothesis out.de --reference few.de --beam 4  => --beam 4 has no effect
$ nmt evaluate --hypothesis out.de  => Received --hypothesis alone
$ nmt evaluate --resamples 100000000  => 100,000,000 bootstrap resamples of 30 sentences would take 291
$ printf 'one\ntwo\n' > few.en; printf 'eins\n' > few.de
$ nmt evaluate --source few.en --reference few.de  => few.de has 1 and few.en has 2 lines
$ touch few.en few.de
$ nmt evaluate --source few.en --reference few.de  => few.de is empty
$ rm -r data/english-german-both
$ nmt evaluate  => Dataset 'english-german-both', which run 'base' was trained
$ echo 'im one' >> data/english-german-both/test.source.txt
$ nmt evaluate  => data/english-german-both/test.source.txt is missing
$ nmt prepare english-german-both.pkl --overwrite --set data.seed=7
$ nmt evaluate  => data/english-german-both is not the dataset that run 'base'

# --- nmt report ------------------------------------------------------------------------------------------------------
$ nmt report --no-attention --sentence 'im thirsty'  => --sentence 'im thirsty' has no effect with --no-attention
$ nmt report --output report.pdf  => The report cannot be written to 'report.pdf'
$ echo mine > mine.html
$ nmt report --output mine.html --no-scores --no-attention  => mine.html exists and is not a report of nmt
$ nmt report --no-scores --sentence '...'  => Sentence '...' has no words after the normalization of run base

# --- nmt fetch -------------------------------------------------------------------------------------------------------
$ nmt fetch english-german  => There is no public corpus 'english-german' (did you mean
$ nmt fetch english-german-both  => data/english-german-both.pkl exists already and is not the public file
$ rm data/english-german-both.pkl
& nmt.data.sources.public.CORPORA = {"b": PublicFile("b.pkl", "http://127.0.0.1:1/b.pkl", "", "0" * 64)}
& nmt.data.sources.public.RETRIES = 0
$ nmt fetch b  => data/b.pkl could not be downloaded from https://example.org/b.pkl: Connection refused
$ nmt fetch  => nmt fetch needs the name of a corpus
$ nmt fetch opus:Tatoeba  => nmt fetch opus:Tatoeba names no corpus of a language pair
$ nmt fetch opus:Tatoeba german  => --languages is 'german'
$ nmt fetch tatoeba de-fr  => has only pairs with English, not de-fr
$ nmt fetch sacrebleu:wmt02 en-de  => sacrebleu has no test set 'wmt02' from en to de (did you mean
& nmt.data.sources.public_corpora.OPUS = "http://127.0.0.1:1/opusapi/"
$ nmt fetch opus:Tatoeba en-de  => cannot be reached: Connection refused. nmt fetch needs a network
$ rm -r data; touch data
$ nmt fetch english-german-both  => data is a file, and has to be a folder

# --- nmt bench, nmt demo ---------------------------------------------------------------------------------------------
$ nmt bench --generated --dataset english-german-both  => Sentences are either generated or taken from a dataset
$ nmt bench --generated --set model.positions=learned --set model.max_positions=20
=> This model reads at most 20 tokens
"""


# --- reading the table ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """The commands that lead to a message, and the key phrase of the message."""

    steps: list[str]
    command: str
    phrase: str
    leaves: str | None
    """Path that the refused command writes to, None for none."""


def read_table(table: str) -> dict[str, list[Row]]:
    """Return the rows of each section, by its title."""
    sections: dict[str, list[Row]] = {}
    steps = list[str]()
    for line in table.splitlines():
        if title := re.fullmatch(r"# --- (.+?) -+", line):
            rows = sections[title[1]] = []
        elif line and not line.startswith("#"):
            command, arrow, phrase = line.partition("=> ")
            steps += [command.strip()] if command else []
            if arrow:
                left = [step.removeprefix("& leaves ") for step in steps if step.startswith("& leaves ")]
                *before, last = [step for step in steps if not step.startswith("& leaves ")]
                rows.append(Row(before, last.removeprefix("$ "), phrase, left[0] if left else None))
                steps = []
    assert not steps, "a row without a key phrase"
    return sections


SECTIONS = read_table(TABLE)


# --- taking the steps -------------------------------------------------------------------------------------------------


def hold_lock(patch: pytest.MonkeyPatch, path_and_holder: str) -> None:
    """Hold a lock as another process does, and write the name of its holder beside it."""
    path, _, holder = path_and_holder.partition(" ")
    Path(f"{path}.holder").write_text(holder)
    lock = FileLock(path)
    lock.acquire()
    patch.setattr(hold_lock, "lock", lock, raising=False)  # released when the patch is undone


def exhausted() -> Exception:
    """Return TensorFlow's error for memory that has run out."""
    return tf.errors.ResourceExhaustedError(None, None, "no memory for a tensor")


def take(step: str, patch: pytest.MonkeyPatch) -> None:
    """Execute a step of a row."""
    if step.startswith("& variable "):
        patch.setenv(*step.removeprefix("& variable ").split(" ", 1))
    elif step.startswith("& listen "):
        patch.setattr(take, "server", socket.create_server(("", int(step.removeprefix("& listen ")))), raising=False)
    elif step.startswith("& lock "):
        hold_lock(patch, step.removeprefix("& lock "))
    elif step.startswith("& "):
        name, value = step[2:].split(" = ")
        patch.setattr(name, eval(value))
    elif step.startswith("$ nmt "):
        assert run(step[2:]).code == 0
    elif step.startswith("$ python -c "):
        exec(shlex.split(step)[3], {})  # as Python would, which takes a while to start
    else:
        subprocess.run(["bash", "-ec", step[2:]], check=True, timeout=30)


def run(command: str) -> Outcome:
    """Run a command line. A shell runs the part before a pipe."""
    before, _, after = command.rpartition("| ")
    piped = subprocess.run(["bash", "-c", before], capture_output=True, check=True).stdout if before else b""
    outcome = run_nmt(*shlex.split(after)[1:], stdin=piped)
    return replace(outcome, err=as_printed(outcome.err))


def as_printed(text: str) -> str:
    """Return a message with paths and addresses that are the same on every machine."""
    return re.sub(r"http://127\.0\.0\.1:\d+", "https://example.org", text.replace(str(ROOT), "/opt")).rstrip()


def contents(folder: Path) -> dict[str, bytes | None]:
    """Return the entries of a folder by path: the content of each file, None for a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


# --- the full texts ---------------------------------------------------------------------------------------------------


def transcript(row: Row, message: str) -> str:
    """Return the commands of a row and the message, in wrapped lines."""
    typed = [step if step.startswith("&") else f"$ {step.removeprefix('$ ')}" for step in [*row.steps, row.command]]
    wrapped = [textwrap.fill(line, 120, subsequent_indent="     ", break_long_words=False, break_on_hyphens=False)
               for line in message.splitlines()]  # fmt: skip
    return "\n".join([*typed, *wrapped])


def read_texts(text: str) -> dict[str, str]:
    parts = re.split(r"^# (.+)\n", text, flags=re.M)
    return dict(zip(parts[1::2], (part.strip() for part in parts[2::2]), strict=True))


def rewrite_texts(section: str, text: str) -> None:
    """Replace a section of messages.txt. Another process may write another section at the same time."""
    with FileLock(TEXTS.parent / "__pycache__" / "messages.lock"):  # which git ignores
        texts = {**read_texts(TEXTS.read_text(encoding="utf-8")), section: text}
        parts = [f"# {title}\n\n{texts[title]}" for title in SECTIONS if title in texts]
        TEXTS.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


# --- the tests --------------------------------------------------------------------------------------------------------


def differences(row: Row, outcome: Outcome, before: dict[str, bytes | None], after: dict[str, bytes | None]) -> str:
    """Return the differences between a row and the outcome as text, "" for none."""
    changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    found = []
    if outcome.code != 2:
        found.append(f"exit code {outcome.code}; printed {outcome.out!r}")
    if row.phrase not in " ".join(outcome.err.splitlines()):
        found.append(f"expected: {row.phrase}\nreceived: {outcome.err}")
    if outcome.out and not row.command.startswith("nmt train"):  # it prints before it can fail
        found.append(f"printed {outcome.out!r}")
    if row.leaves is None and changed:
        found.append(f"changed {sorted(changed)}")
    if row.leaves is not None and not (changed and all(path.startswith(row.leaves) for path in changed)):
        found.append(f"changed {sorted(changed)} instead of {row.leaves}")
    return "".join(f"\n{difference}" for difference in found)


@pytest.mark.slow
@pytest.mark.parametrize("section", SECTIONS)
def test_messages(section: str, trained_project: Path, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    wrong, texts = [], []
    for number, row in enumerate(SECTIONS[section]):
        project = Path(shutil.copytree(trained_project, tmp_path / str(number)))
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(project)
            for step in row.steps:
                take(step, patch)
            before = contents(project)
            outcome = run(row.command)
            if found := differences(row, outcome, before, contents(project)):
                wrong.append(f"$ {row.command}{found}")
        texts.append(transcript(row, outcome.err))
        shutil.rmtree(project)
    assert not wrong, "\n\n".join(wrong)
    if pytestconfig.getoption("--rewrite-messages"):
        rewrite_texts(section, "\n\n".join(texts))
    known = read_texts(TEXTS.read_text())[section].splitlines()
    changes = list(difflib.unified_diff(known, "\n\n".join(texts).splitlines(), "messages.txt", "now", lineterm=""))
    assert not changes, "\n".join([*changes, "Good words? pytest tests/cli/test_messages.py --rewrite-messages"])


def test_the_texts_have_the_sections_of_the_table() -> None:
    assert list(read_texts(TEXTS.read_text())) == list(SECTIONS)


@pytest.mark.parametrize("command", ["nmt traim", "nmt plot loss", "nmt train --set epochs=1", "nmt prepare ghost.tsv"])
def test_a_process_of_its_own_says_the_same(command: str, trained_project: Path) -> None:
    [row] = [row for rows in SECTIONS.values() for row in rows if row.command == command]
    assert row.phrase in in_a_process(*shlex.split(command)[1:], cwd=trained_project, code=2).stderr
