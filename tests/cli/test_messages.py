"""Transcript of every error message for users: the commands that lead to it, and its text.

Each paragraph of the table starts in a fresh copy of a project in which english-german-both.pkl is prepared and
base.yaml trained for two epochs. Lines with "$" are typed. The last of them is the command that is refused, with exit
code 2 and nothing written; the lines before it create the conditions. Lines with "&" arrange what a shell cannot: a
lower limit, the answer of a server, a lock held by another process. "& leaves PATH" names where the refused command
writes nevertheless. The message follows, wrapped and indented.
"""

import ast
import contextlib
import io
import re
import shlex
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from conftest import ROOT
from conftest import nmt as in_a_process
from pydantic import ValidationError

from nmt import errors
from nmt.cli import app as cli
from nmt.data import cleaning as corpus
from nmt.data.sources import formats as readers
from nmt.data.sources import pickled_array as safe_pickle
from nmt.data.sources import public as downloads
from nmt.runtime import tf
from nmt.training.memory.demand import Demand  # noqa: F401 - of a row, as the next two
from nmt.training.memory.fit import Fit  # noqa: F401
from nmt.training.optimization.batch_limit import ShortageError  # noqa: F401

TABLE = r"""
# --- nmt, whatever the command ---------------------------------------------------------------------------------------

$ nmt traim
nmt: There is no command 'traim' (did you mean 'train'?). See nmt --help

$ nmt --verbos
nmt: nmt has no option '--verbos' (did you mean '--version'?). See nmt --help

$ nmt translate --bem 3 'im thirsty'
nmt: translate has no option '--bem' (did you mean '--beam'?). See nmt translate --help

$ nmt translate --beam
nmt: --beam takes a value; received none. See nmt --help

$ nmt translate --sample=yes 'im thirsty'
nmt: --sample takes no value; received one. See nmt --help

$ nmt evaluate --resamples many
nmt: --resamples must be a valid integer; received 'many'. See nmt evaluate --help

$ nmt translate --n-best 0 'im thirsty'
nmt: --n-best must be greater than or equal to 1; received '0'. See nmt translate --help

$ nmt plot
nmt: plot takes FIGURE; received none. See nmt plot --help

$ nmt info base
nmt: info takes no argument; received 'base'. See nmt info --help

$ nmt fetch english-german-both english-german-lesson
nmt: fetch takes NAME; received 'english-german-lesson' too. See nmt fetch --help

# Nothing is there yet.

$ rm -r checkpoints
$ nmt info
nmt: No run is in checkpoints/ yet. Train first, for example: nmt train

$ nmt info --run bass
nmt: There is no run 'bass' in checkpoints/ (did you mean 'base'?). There are: base.

$ rm -r data
$ nmt train --run base
nmt: There is no prepared dataset 'english-german-both'. Make one with: nmt prepare FILE

$ rm -r data
$ nmt train
nmt: No dataset is prepared in data/ yet. Make one with: nmt prepare FILE

$ rm -r data
$ nmt train --config base.yaml --run new
nmt: No dataset is prepared in data/ yet. Make one with: nmt prepare FILE

$ nmt train --dataset english
nmt: There is no prepared dataset 'english'. Prepared: english-german-both.

$ nmt train --dataset ../english
nmt: '../english' cannot be the name of a dataset. A name starts with a letter or digit and holds only letters, digits
     and . _ - (at most 100 characters). Choose another name.

$ nmt train --run ../up
nmt: '../up' cannot be the name of a run. A name starts with a letter or digit and holds only letters, digits and . _
     - (at most 100 characters). Choose another name.

# Workers.

$ nmt train --workers 3 --set training.micro_batches=2
nmt: There are 3 workers, and training.micro_batches is 2. A step is shared by its micro-batches, so it needs one for
     each worker. Start at most 2, or another run with --set training.micro_batches=3, whose batches may be smaller by
     that factor.

$ nmt train --workers 2 --hosts a:1,b:1
nmt: --workers starts processes on this machine, --hosts names those of a cluster; received both. Leave one of them out.

$ nmt train --index 1
nmt: --index 1 is the number of a worker in --hosts; received it without --hosts. Add --hosts, or leave it out.

$ nmt train --hosts a:1,b:1
nmt: --hosts names 2 workers, and --index is missing. Each worker gives the number of its own address in --hosts, from
     0.

$ nmt train --hosts a:1,b --index 0
nmt: --hosts has the address 'b'. An address is HOST:PORT, as in node1:8470.

$ nmt train --hosts a:1,a:1 --index 0
nmt: --hosts has the address 'a:1' twice. Each worker listens at an address of its own.

$ nmt train --hosts a:1,b:1 --index 2
nmt: --index is 2, and --hosts names 2 workers. They count from 0.

& variable TF_CONFIG {"cluster": {"worker": ["a:1", "b:1"]}}
$ nmt train --workers 3
nmt: --workers is 3, and this process belongs to a cluster of 2 workers, by TF_CONFIG or the variables of SLURM. Leave
     --workers out.

& variable TF_CONFIG {"cluster": {"worker": "a:1"}}
$ nmt train
nmt: TF_CONFIG is not a cluster: cluster.worker: Input should be a valid array. It is JSON such as {"cluster":
     {"worker": ["a:8470", "b:8470"]}, "task": {"type": "worker", "index": 0}}.

& variable TF_CONFIG {"cluster": {"worker": ["a:1", "b:1"], "ps": ["c:1"]}}
$ nmt train
nmt: TF_CONFIG names a 'ps'. Training has workers alone, of type worker, or a chief and workers. Leave the others out.

& variable TF_CONFIG {"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "chief"}}
$ nmt train
nmt: TF_CONFIG gives this process the type 'chief', which its cluster has not.

& variable TF_CONFIG {"cluster": {"worker": ["a:1", "b:1"]}, "task": {"index": 2}}
$ nmt train
nmt: TF_CONFIG gives this process index 2 of type 'worker', of which its cluster has 2.

& variable SLURM_STEP_NUM_TASKS 2
$ nmt train
nmt: SLURM_PROCID is None. srun sets it to a number. Start nmt with srun.

& variable SLURM_STEP_NUM_TASKS 2
& variable SLURM_PROCID 1
$ nmt train
nmt: SLURM_STEP_NODELIST is ''. srun sets it to the names of nodes. Start nmt with srun.

& variable SLURM_STEP_NUM_TASKS 2
& variable SLURM_STEP_NODELIST localhost
& variable SLURM_PROCID 2
$ nmt train
nmt: SLURM_PROCID is 2, and SLURM_STEP_NUM_TASKS is 2. Ranks count from 0.

$ nmt train --run new --set training.micro_batches=2 --hosts 127.0.0.1:24571,127.0.0.1:24572 --index 0 --wait 1
nmt: Worker 1 of 2 did not come to 127.0.0.1:24571 within 1 s. Start all workers with the same command, and see that
     they reach that address.

$ nmt train --run new --set training.micro_batches=2 --hosts 127.0.0.1:24571,127.0.0.1:24572 --index 1 --wait 1
nmt: Worker 1 did not reach worker 0 at 127.0.0.1:24571 within 1 s: Connection refused. Start all workers with the same
     command, and see that they reach that address.

& listen 24571
$ nmt train --run new --set training.micro_batches=2 --hosts 127.0.0.1:24571,127.0.0.1:24572 --index 0 --wait 1
nmt: Worker 0 cannot listen at port 24571: Address already in use. Each worker listens at a port of its own. End the
     process that uses it (a worker of an earlier start, perhaps), or give another port.

$ nmt translate --workers 2 'im thirsty'
nmt: --workers 2 shares the lines of a file to translate; received it without --input. Leave it out, or give --input.

# A folder is not what it is to be.

$ rm -r data && touch data
$ printf 'one\teins\n' > pairs.tsv
$ nmt prepare pairs.tsv
nmt: data cannot be used: File exists. Check the name, the permissions and the disk.

# --- nmt export, and what translates with exports ---------------------------------------------------------------------

$ nmt export --to onnx
nmt: There is no export format 'onnx'. Known: ctranslate2, argos, saved-model, huggingface.

$ nmt export --to ctranslate2 --quantization int4
nmt: There is no number format 'int4' (did you mean 'int8'?). Known: float32, int8, int8_float32, int16, float16,
     int8_float16, bfloat16, int8_bfloat16.

$ nmt export --to saved-model --quantization int8
nmt: --quantization is for ctranslate2 and argos; received it with --to saved-model, which holds float32. Leave it out.

$ nmt export --to argos --vocabulary-map
nmt: --vocabulary-map is for ctranslate2; received it with --to argos. Leave it out.

$ nmt export --to argos
nmt: The model has words as tokens. Argos Translate makes tokens with sentencepiece. Prepare the corpus with --set
     data.tokenizer=subword and train again, or export with --to saved-model.

$ sed -i 's/encoder_norm: true/encoder_norm: false/; s/residual: true/residual: false/' checkpoints/base/config.yaml
$ nmt export --to ctranslate2
nmt: Run 'base' has an encoder without residual sums and layer norms (model.encoder_residual: false and
     model.encoder_norm: false). CTranslate2 runs whole Transformers. Export it with --to saved-model.

$ nmt export --to ctranslate2
$ nmt export --to ctranslate2
nmt: checkpoints/base/exports/ctranslate2-float32 exists already. An export is not overwritten unless you ask for it.
     Give another --output, or --overwrite.

$ mkdir mine
$ nmt export --to ctranslate2 --output mine --overwrite
nmt: mine exists and is not an export. --overwrite replaces exports alone. Give another --output.

$ nmt translate --backend ctranslate2 'im thirsty'
nmt: Run 'base' has no export to ctranslate2. Exports are in checkpoints/base/exports. Make one with: nmt export --run
     base --to ctranslate2

$ nmt translate --backend tensorfow 'im thirsty'
nmt: There is no backend 'tensorfow' (did you mean 'tensorflow'?). Known: tensorflow, ctranslate2.

$ nmt translate --backend tensorflow --export ./model 'im thirsty'
nmt: --export ./model is for CTranslate2; received it with --backend tensorflow. Leave one of them out.

$ nmt translate --backend ctranslate2 --precision bfloat16 'im thirsty'
nmt: --precision bfloat16 is for TensorFlow. An export has the number format that it was written in. Leave it out, or
     export with another --quantization.

$ printf 'im thirsty\n' > three.en
$ nmt translate --backend ctranslate2 --input three.en --workers 2
nmt: CTranslate2 translates on all cores by itself; received --workers 2. Leave it out, or choose --backend tensorflow.

$ nmt translate --run base --export ./model 'im thirsty'
nmt: --export ./model is a folder, which holds all of a model; received --run base too. Leave one of them out.

$ nmt translate --export ./model 'im thirsty'
nmt: model holds no exported model: export.json is missing. Make one with: nmt export --run RUN --to ctranslate2
     --output model

$ nmt export --to ctranslate2 --epoch 1
$ nmt translate --backend ctranslate2 --epoch 2 'im thirsty'
nmt: checkpoints/base/exports/ctranslate2-float32 has the weights of epoch 1; received --epoch 2. Leave it out, or
     export these weights: nmt export --run base --epoch 2 --to ctranslate2 --overwrite

$ nmt export --to ctranslate2 --output model
$ python -c "import pathlib; file = pathlib.Path('model/model.bin'); file.write_bytes(bytes(file.stat().st_size))"
$ nmt translate --export ./model 'im thirsty'
nmt: model/model.bin has changed: its SHA-256 is not the one noted when it was written. Export the run again.

$ nmt evaluate --backend ctranslate2 --precision float32
nmt: --precision float32 is for TensorFlow; received it with --backend ctranslate2. An export has the number format that
     it was written in, and uses all cores. Leave it out.

$ nmt bench --backend ctranslate2
nmt: --backend ctranslate2 is for translation with --run; received it without. Add --run RUN.

# --- nmt serve -------------------------------------------------------------------------------------------------------

$ nmt serve bass
nmt: There is no run 'bass' in checkpoints/ (did you mean 'base'?). There are: base.

$ nmt serve base base --port 0
nmt: Two models translate en to de: run base, epoch 2, and run base, epoch 2. A service has one model for each
     language pair. Leave one of them out.

$ nmt serve --port 70000
nmt: --port must be less than or equal to 65535; received '70000'. See nmt serve --help

& listen 24573
$ nmt serve --port 24573
nmt: Port 24573 of 127.0.0.1 is in use. A service listens at a port of its own. End the program that uses it, or give
     another --port; 0 takes any that is free.

$ nmt serve --host 192.0.2.1
nmt: The service cannot listen at port 5000 of 192.0.2.1: Cannot assign requested address. Give another --host or
     --port.

$ nmt serve --host 'no address'
nmt: --host 'no address' is no address of this machine. Give 127.0.0.1, or 0.0.0.0 for all addresses.

$ nmt serve --allow-origin example.org
nmt: --allow-origin 'example.org' is no origin. An origin is scheme://host or scheme://host:port, or * for all. Give
     for example --allow-origin https://example.org

$ nmt serve --api-keys keys.txt
nmt: There is no file keys.txt. Check the name, or give the full path.

$ echo '# none yet' > keys.txt
$ nmt serve --api-keys keys.txt
nmt: keys.txt has no API key. It holds one key a line. Add a key, or leave out --api-keys.

$ printf 'first\nsecond third\n' > keys.txt
$ nmt serve --api-keys keys.txt
nmt: keys.txt has white space in key 2. It holds one key a line. Correct the line.

$ nmt serve --port 0 --beam 0
nmt: --beam is 0, but must be greater than or equal to 1. Change the value.

$ mkdir other
$ echo '{"format": 1, "to": "argos", "run": "base", "epoch": 1, "quantization": "int8",' > other/export.json
$ echo '"positions": null, "nmt": "0", "files": {}}' >> other/export.json
$ nmt serve --port 0 ./other
nmt: other is an export to argos. A service uses runs, and exports to ctranslate2. Export the run with --to ctranslate2,
     or name the run.

$ nmt serve --port 0 checkpoints/base
nmt: checkpoints/base holds no exported model: export.json is missing. Make one with: nmt export --run RUN --to
     ctranslate2 --output checkpoints/base

# --- nmt tune --------------------------------------------------------------------------------------------------------

$ nmt tune --minutes nan
nmt: --minutes is nan. It is the time of all trials, more than 0. Change the value.

$ nmt tune --name ../up
nmt: '../up' cannot be the name of a tuning. A name starts with a letter or digit and holds only letters, digits and
     . _ - (at most 100 characters). Choose another name.

$ nmt tune --name base
nmt: checkpoints/base is a run. A tuning has a folder of its own. Give another --name.

$ mkdir checkpoints/notes
$ nmt tune --name notes
nmt: checkpoints/notes exists already. It is never overwritten. Choose another name, or move it away.

$ mkdir checkpoints/tuned
$ echo '{"format": 1, "dataset": "english-german-both", "fingerprint": "0", "origin": "the recipe", "base": {},' > tuned
$ echo '"minutes": 60.0, "sentences": 30}' >> tuned
$ cp tuned checkpoints/tuned/tuning.json
$ nmt tune --name tuned --minutes 30
nmt: Tuning 'tuned' was started with other settings or data: minutes 60 before, 30 now; dataset english-german-both has
     new content. A tuning keeps those that it was started with. Start another one with --name NAME, or leave the
     options out to go on.

$ mkdir checkpoints/tuned
$ echo '{"format": 1, "dataset": "english-german-both", "fingerprint": "0", "origin": "the recipe", "base": {},' > tuned
$ echo '"minutes": 60.0, "sentences": 30, "rungs": [{"training_seconds": 9.0, "trials": []}]}' >> tuned
$ cp tuned checkpoints/tuned/tuning.json
$ nmt tune --name tuned
nmt: checkpoints/tuned/tuning.json is damaged: Value error, candidates, rungs and verdict contradict each other. nmt
     tune writes it. Restore a copy, or start another tuning with --name NAME.

$ mkdir checkpoints/tuned
$ head -c 17000000 /dev/zero > checkpoints/tuned/tuning.json
$ nmt tune --name tuned
nmt: checkpoints/tuned/tuning.json is too long. The record of a tuning has at most 16,777,216 bytes. Restore a copy, or
     start another tuning with --name NAME.

$ sed -i '/"validation": {/,/}/ s/"pairs": [0-9]*/"pairs": 0/' data/english-german-both/manifest.json
$ nmt tune
nmt: Dataset 'english-german-both' has no validation pairs. Tuning decides by translations of them. Prepare the corpus
     again with --set data.validation_share=0.1, or with --validation FILE.

$ nmt tune --set model.positions=learned --set model.max_positions=2
nmt: The recipe cannot be trained: The longest source of the train split has 6 tokens with bos and eos; this model reads
     at most 2. Set model.max_positions=6, or model.positions=sinusoidal.

# --- nmt prepare: the command line -----------------------------------------------------------------------------------

$ nmt prepare
nmt: prepare takes FILE [FILE]; received none. See nmt prepare --help

$ nmt prepare ghost.tsv
nmt: There is no file 'ghost.tsv'; looked for: ghost.tsv, data/ghost.tsv. Check the name, or give the full path.

$ nmt prepare english-german-bth.pkl
nmt: There is no file 'english-german-bth.pkl' (did you mean 'english-german-both.pkl'?); looked for:
     english-german-bth.pkl, data/english-german-bth.pkl. Check the name, or give the full path.

$ nmt prepare '~nosuchuser/pairs.tsv'
nmt: There is no file '~nosuchuser/pairs.tsv'; looked for: ~nosuchuser/pairs.tsv. Check the name, or give the full
     path.

$ nmt prepare one.en two.en one.de
nmt: FILE received 3 files: one.en, two.en, one.de. A corpus is one file of pairs, or two files with a side each. Join
     the files of a side first, for example with cat.

$ nmt prepare english-german-both.pkl --name 'my data'
nmt: 'my data' cannot be the name of a dataset. A name starts with a letter or digit and holds only letters, digits
     and . _ - (at most 100 characters). Choose another name.

$ nmt prepare english-german-both.pkl --set data.seed=7
nmt: data/english-german-both was prepared from english-german-both.pkl with differences: seed 73 before, 7 now. A
     dataset is not overwritten unless you ask for it. Give another --name, or --overwrite.

$ mkdir data/notes
$ nmt prepare english-german-both.pkl --name notes
nmt: data/notes exists and is not a dataset. nmt prepare writes a folder of its own. Give another --name.

$ printf 'one\teins\n' > pairs.tsv
$ nmt prepare pairs.tsv --name english-german-both
nmt: data/english-german-both was prepared from english-german-both.pkl with differences: other content. A dataset is
     not overwritten unless you ask for it. Give another --name, or --overwrite.

$ nmt prepare english-german-both.pkl --name again --tokenizer-of bass
nmt: There is no run 'bass' in checkpoints/ (did you mean 'base'?). There are: base.

$ nmt prepare english-german-both.pkl --name again --tokenizer-of base --set data.tokenizer=char
nmt: --set data.tokenizer is 'char', but data.tokenizer of run 'base' is 'word'. With --tokenizer-of, text is
     tokenized as in the run. Leave out --set data.tokenizer, or leave out --tokenizer-of to fit new tokenizers.

$ nmt prepare english-german-both.pkl --name again --languages english-german
nmt: --languages is 'english-german'. It takes the codes of source and target, two or three letters each, such as
     en-de; a code with a region is separated by a comma, as in en,pt-BR. Give two such codes.

$ nmt prepare english-german-both.pkl --name again --languages en-de --set data.target_language=fr
nmt: --languages is 'en-de', but --set data.target_language is 'fr'. --languages is short for data.source_language and
     data.target_language. Leave out one of the two.

$ nmt prepare english-german-both.pkl --name again --set data.source_language=English
nmt: --set data.source_language=English: data.source_language: 'English' is no language code. A code has two or three
     lower-case letters, such as en or pt-BR. Give such a code, or null for an unknown language.

$ nmt prepare english-german-both.pkl --languages en-fr
nmt: data/english-german-both was prepared from english-german-both.pkl with differences: target_language 'de' before,
     'fr' now. A dataset is not overwritten unless you ask for it. Give another --name, or --overwrite.

# --- nmt prepare: pickles --------------------------------------------------------------------------------------------

$ touch empty.pkl
$ nmt prepare empty.pkl
nmt: empty.pkl is empty. A pickled corpus holds one NumPy array of strings. Save the pairs with
     pickle.dump(numpy.array(pairs, dtype=str), file), or as text with two tab-separated columns, in a file whose name
     ends in .tsv or .txt.

$ printf 'one\teins\n' > text.pkl
$ nmt prepare text.pkl
nmt: text.pkl looks like text. A pickled corpus holds one NumPy array of strings. Two-column text is read when its
     name ends in .tsv or .txt.

$ echo '<!DOCTYPE html>' > page.pkl
$ nmt prepare page.pkl
nmt: page.pkl is a web page. A pickled corpus holds one NumPy array of strings. Download the raw file rather than the
     page that shows it.

$ gzip -c data/english-german-both.pkl > packed.pkl
$ nmt prepare packed.pkl
nmt: packed.pkl is gzip data. A pickled corpus holds one NumPy array of strings. Unpack it with gunzip first.

$ head -c 2000 data/english-german-both.pkl > half.pkl
$ nmt prepare half.pkl
nmt: half.pkl is damaged or cut off (2000 bytes). A pickled corpus holds one NumPy array of strings. Copy it again.

$ (cat data/english-german-both.pkl; echo more) > longer.pkl
$ nmt prepare longer.pkl
nmt: longer.pkl has further bytes after the end of the pickle, at byte 64954. A pickled corpus holds one NumPy array
     of strings. Copy it again.

$ printf 'cos\nsystem\n(S"touch executed"\ntR.' > hostile.pkl
$ nmt prepare hostile.pkl
nmt: hostile.pkl asks to load os.system, which could run code; nothing was run. A pickled corpus holds one NumPy array
     of strings. Save the pairs with pickle.dump(numpy.array(pairs, dtype=str), file), or as text with two
     tab-separated columns, in a file whose name ends in .tsv or .txt.

$ printf '\x80\x04]\x94.' > list.pkl
$ nmt prepare list.pkl
nmt: list.pkl holds a list. A pickled corpus holds one NumPy array of strings. Save the pairs with
     pickle.dump(numpy.array(pairs, dtype=str), file), or as text with two tab-separated columns, in a file whose name
     ends in .tsv or .txt.

$ printf '\x80\x04N\x92.' > odd.pkl
$ nmt prepare odd.pkl
nmt: odd.pkl uses the pickle instruction NEWOBJ_EX, which an array never needs; nothing was run. A pickled corpus
     holds one NumPy array of strings. Save the pairs with pickle.dump(numpy.array(pairs, dtype=str), file), or as
     text with two tab-separated columns, in a file whose name ends in .tsv or .txt.

$ printf '\x80\x04K\x07.' > number.pkl
$ nmt prepare number.pkl
nmt: number.pkl holds a value of type int. A pickled corpus holds one NumPy array of strings. Save the pairs with
     pickle.dump(numpy.array(pairs, dtype=str), file), or as text with two tab-separated columns, in a file whose name
     ends in .tsv or .txt.

$ python -c "open('long.pkl', 'wb').write(b'\x80\x04' + b'N' * 200 + b'.')"
$ nmt prepare long.pkl
nmt: long.pkl has more than 100 pickle instructions; an array needs fewer. A pickled corpus holds one NumPy array of
     strings. Save the pairs with pickle.dump(numpy.array(pairs, dtype=str), file), or as text with two tab-separated
     columns, in a file whose name ends in .tsv or .txt.

$ python -c "import numpy as np, pickle; pickle.dump(np.ones((5, 2)), open('floats.pkl', 'wb'))"
$ nmt prepare floats.pkl
nmt: floats.pkl holds an array of dtype 'f8' instead of strings. A pickled corpus holds one NumPy array of strings.
     Save the pairs with pickle.dump(numpy.array(pairs, dtype=str), file), or as text with two tab-separated columns,
     in a file whose name ends in .tsv or .txt.

$ python -c "import numpy as np, pickle; pickle.dump(np.array([['a', 'b']], object), open('objects.pkl', 'wb'))"
$ nmt prepare objects.pkl
nmt: objects.pkl holds an array of Python objects (dtype 'O8'). A pickled corpus holds one NumPy array of strings.
     Save the pairs with pickle.dump(numpy.array(pairs, dtype=str), file), or as text with two tab-separated columns,
     in a file whose name ends in .tsv or .txt.

$ python -c "import numpy as np, pickle; pickle.dump(np.array([['a', 'b', 'c']] * 5), open('columns.pkl', 'wb'))"
$ nmt prepare columns.pkl
nmt: columns.pkl holds an array of shape (5, 3). A pickled corpus is an array of shape (N, 2), one pair per row. Keep
     the two columns with the sentences.

$ python -c "import numpy as np, pickle; pickle.dump(np.array([['\ud800', 'b']]), open('surrogate.pkl', 'wb'))"
$ nmt prepare surrogate.pkl
nmt: surrogate.pkl holds 0xd800, which is not the code of a Unicode character. A pickled corpus holds one NumPy array
     of strings. Save the pairs with pickle.dump(numpy.array(pairs, dtype=str), file), or as text with two
     tab-separated columns, in a file whose name ends in .tsv or .txt.

$ sed 's/M,\x01K\x02/M,\x02K\x02/' data/english-german-both.pkl > shape.pkl
$ nmt prepare shape.pkl
nmt: shape.pkl is damaged: its 64800 bytes of text do not fill its shape. A pickled corpus holds one NumPy array of
     strings. Copy it again.

$ gzip data/english-german-both.pkl
& nmt.data.sources.pickled_array.MAX_BYTES = 1000
$ nmt prepare english-german-both.pkl.gz --name again
nmt: data/english-german-both.pkl.gz has more than 1000 bytes. A pickled corpus has at most 1000. Give the pairs as a
     .tsv file.

& nmt.data.sources.pickled_array.MAX_BYTES = 1000
$ nmt prepare english-german-both.pkl --name again
nmt: data/english-german-both.pkl has 64955 bytes. A pickled corpus has at most 1000. Give the pairs as a .tsv file.

# --- nmt prepare: text -----------------------------------------------------------------------------------------------

$ printf 'one\teins\ntwo zwei\nthree\tdrei\n' > pairs.tsv
$ nmt prepare pairs.tsv
nmt: pairs.tsv, line 2 has no tab: 'two zwei'. Each line of a TSV corpus has a source sentence, a tab and its
     translation. Correct or remove the line, or drop and count unreadable lines with --set data.drop_unreadable=true

$ printf 'one\teins\tx\ntwo\tzwei\n' > pairs.tsv
$ nmt prepare pairs.tsv --set data.target_column=3
nmt: pairs.tsv, line 2 has 2 columns: 'two\tzwei'. Each line of a TSV corpus has at least 3 columns, separated by
     tabs. Correct or remove the line, or drop and count unreadable lines with --set data.drop_unreadable=true

$ printf 'one\teins\nfive\tf\xfcnf\n' > pairs.tsv
$ nmt prepare pairs.tsv
nmt: pairs.tsv, line 2 is not UTF-8: it holds the byte 0xfc. Convert it, for example with iconv -f latin1 -t utf-8, or
     drop and count unreadable lines with --set data.drop_unreadable=true

$ printf 'english\tgerman\none\teins\n' > pairs.tsv
$ nmt prepare pairs.tsv --set data.source_column=english --set data.target_column=deutsch
nmt: pairs.tsv, line 1 names the columns 'english, german', not 'deutsch'. Set data.source_column and
     data.target_column to two of these names, or to numbers from 1.

$ printf 'one\teins\n?!\tzwei\nthree\tdrei\nfour\tvier\n' > pairs.tsv
$ nmt prepare pairs.tsv --set data.normalization=ascii-words
nmt: pairs.tsv, line 2: the source is empty after 'ascii-words' normalization: '?!'. Both sides of a pair must hold
     words. Correct the pair, or drop and count such pairs with --set data.drop_empty=true

& nmt.data.sources.text_file.MAX_LINE = 20
$ printf 'one\teins\nthe longest line that was ever seen\tzwei\n' > pairs.tsv
$ nmt prepare pairs.tsv
nmt: pairs.tsv, line 2 is longer than 20 bytes. A corpus has one sentence or one pair per line. Give another text
     file.

$ printf 'one\ntwo\n' > few.en; printf 'eins\nzwei\ndrei\n' > few.de
$ nmt prepare few.en few.de
nmt: few.en has 2 lines, few.de has 3. Two files are paired line by line, so they need equally many. Give two files
     that belong together.

$ printf 'one\nf\xfcnf\n' > few.en; printf 'eins\nzwei\n' > few.de
$ nmt prepare few.en few.de
nmt: few.en, line 2 is not UTF-8: it holds the byte 0xfc. Convert it, for example with iconv -f latin1 -t utf-8, or
     drop and count unreadable lines with --set data.drop_unreadable=true

# JSON Lines

$ printf '{"source": "one", "target": "eins"}\n{"source": "two"\n' > pairs.jsonl
$ nmt prepare pairs.jsonl
nmt: pairs.jsonl, line 2 is not JSON (Expecting ',' delimiter: line 1 column 17 (char 16)). Each line of a JSON Lines
     corpus is an object with the text fields 'source' and 'target'. Correct or remove the line, or name other fields
     with --set data.source_column and data.target_column, or drop and count unreadable lines with --set
     data.drop_unreadable=true

$ printf '{"en": "one", "de": "eins"}\n' > pairs.jsonl
$ nmt prepare pairs.jsonl
nmt: pairs.jsonl, line 1 has the fields en, de. Each line of a JSON Lines corpus is an object with the text fields
     'source' and 'target'. Correct or remove the line, or name other fields with --set data.source_column and
     data.target_column, or drop and count unreadable lines with --set data.drop_unreadable=true

$ printf '{"source": "one", "target": 1}\n' > pairs.jsonl
$ nmt prepare pairs.jsonl
nmt: pairs.jsonl, line 1 has 1 instead of text. Each line of a JSON Lines corpus is an object with the text fields
     'source' and 'target'. Correct or remove the line, or name other fields with --set data.source_column and
     data.target_column, or drop and count unreadable lines with --set data.drop_unreadable=true

$ printf '{"source": "one", "target": "f\xfcnf"}\n' > pairs.jsonl
$ nmt prepare pairs.jsonl
nmt: pairs.jsonl, line 1 is not UTF-8: it holds the byte 0xfc. Convert it, for example with iconv -f latin1 -t utf-8,
     or drop and count unreadable lines with --set data.drop_unreadable=true

$ printf '{"source": "one", "target": "eins"}\n' > pairs.jsonl
$ nmt prepare pairs.jsonl --set data.source_column=1 --set data.target_column=2
nmt: data.source_column is 1 and data.target_column 2, but pairs.jsonl is JSON Lines, whose fields have names. Set
     both to the names of fields.

# TMX

$ printf '<tmx>\n<tu>\n</tmx>' > pairs.tmx
$ nmt prepare pairs.tmx
nmt: pairs.tmx, line 3 is not well-formed XML: mismatched tag. Export it again.

$ printf '<tu><tuv lang="en"><seg>one</seg></tuv><tuv lang="de"><seg>eins</seg></tuv></tu>' > unit
$ printf '<tu><tuv lang="en"><seg>one</seg></tuv><tuv lang="fr"><seg>un</seg></tuv></tu>' > other
$ (echo '<tmx>'; cat unit other; echo '</tmx>') > pairs.tmx
$ nmt prepare pairs.tmx
nmt: pairs.tmx, unit 2 has segments in en, fr. Each unit needs one in 'en' and one in 'de'. Name two other languages
     with --set data.source_column and data.target_column, or drop and count unreadable lines with --set
     data.drop_unreadable=true

$ printf '<tmx><tu><tuv lang="en"><seg>one</seg></tuv></tu></tmx>' > pairs.tmx
$ nmt prepare pairs.tmx
nmt: pairs.tmx has segments in en in its first unit. Without the names of two languages, the first unit must have
     exactly two. Name them, for example with --set data.source_column=en --set data.target_column=de

$ printf '<!DOCTYPE tmx [\n<!ENTITY a "aaaa">\n]>\n<tmx>&a;</tmx>' > pairs.tmx
$ nmt prepare pairs.tmx
nmt: pairs.tmx, line 1 has 'DOCTYPE tmx'. A TMX file must declare no entities or attributes: they could grow without
     bound or read other files. Remove the declaration, and write the text instead.

$ printf '<?xml version="1.0" encoding="klingon"?>\n<tmx></tmx>' > pairs.tmx
$ nmt prepare pairs.tmx
nmt: pairs.tmx has an encoding that nmt does not read: unknown encoding: klingon. A TMX file is in UTF-8, UTF-16 or a
     single-byte encoding. Export it again.

& nmt.data.sources.tmx.TmxReader.MAX_UNIT = 20
$ printf '<tmx><tu>\n<tuv lang="en"><seg>one two three four five six</seg></tuv>\n</tu></tmx>' > pairs.tmx
$ nmt prepare pairs.tmx
nmt: pairs.tmx, line 2: the unit is longer than 20 characters, the limit of a TMX unit. Remove it.

& nmt.data.sources.tmx.TmxReader.MAX_DEPTH = 2
$ printf '<tmx><tu><tuv lang="en"></tuv></tu></tmx>' > pairs.tmx
$ nmt prepare pairs.tmx
nmt: pairs.tmx, line 1 nests more than 2 elements. A TMX file nests about six. Export it again.

& nmt.data.sources.tmx.TmxReader.MAX_NAMES = 3
$ printf '<tmx><a/><b/><c/><d/></tmx>' > pairs.tmx
$ nmt prepare pairs.tmx
nmt: pairs.tmx, line 1: the file has more than 3 distinct tags and attributes. A TMX file has about fifty. Export it
     again.

& nmt.data.sources.tmx.TmxReader.MAX_UNIT = 20
$ python -c "open('pairs.tmx', 'w').write('<tmx><!--' + 200_000 * 'x')"
$ nmt prepare pairs.tmx
nmt: pairs.tmx, line 1 begins a tag or comment longer than 20 bytes, the limit of a TMX file. Remove it.

# Archives

$ echo one > a.txt; echo eins > b.txt; python -m zipfile -c two.zip a.txt b.txt
$ nmt prepare two.zip
nmt: two.zip holds a.txt, b.txt. An archive must hold one text file, unless you name the member. Give for example
     two.zip/a.txt

$ echo one > a.txt; echo eins > b.txt; python -m zipfile -c two.zip a.txt b.txt
$ nmt prepare two.zip/c.txt
nmt: There is no member 'c.txt' in two.zip (did you mean 'b.txt'?). It holds: a.txt, b.txt.

$ python -m zipfile -c none.zip
$ nmt prepare none.zip
nmt: none.zip holds no text file. An archive must hold one text file, unless you name the member. Give an archive with
     sentences.

$ python -c "import zipfile; zipfile.ZipFile('rare.zip', 'w', zipfile.ZIP_LZMA).writestr('a.txt', 'one')"
$ nmt prepare rare.zip
nmt: rare.zip/a.txt is compressed by a method that nmt does not read. Zip members must be stored or deflated. Unpack
     it first.

$ echo one > a.txt; zip -qP secret s.zip a.txt
$ nmt prepare s.zip
nmt: s.zip/a.txt cannot be unpacked: File 'a.txt' is encrypted, password required for extraction. Unpack it first.

$ echo 'not packed' > pairs.tsv.gz
$ nmt prepare pairs.tsv.gz
nmt: pairs.tsv.gz is damaged or cut off (Not a gzipped file (b'no')). Copy it again.

$ python -c "import gzip; open('trap.tsv.gz', 'wb').write(gzip.compress(bytes(1_000_000)))"
& nmt.data.sources.text_file.FREE_EXPANSION = 100_000
$ nmt prepare trap.tsv.gz
nmt: trap.tsv.gz has 1,003 bytes and unpacks to more than 262,144. A packed corpus grows to at most 200 times its
     size; real text grows less. If you trust the file, unpack it and give the plain file.

# --- nmt prepare: too little, too long -------------------------------------------------------------------------------

$ rm -r data; printf 'one\teins\ntwo\tzwei\n' > pairs.tsv
$ nmt prepare pairs.tsv
nmt: pairs.tsv has 2 usable pairs. Each of train, validation, test needs at least one. Give a file with more pairs.

$ printf 'one\teins\none\tein\none\teine\n' > pairs.tsv
$ nmt prepare pairs.tsv
nmt: The train split would be empty: the corpus has 3 pairs with 1 distinct source. Each of train, validation, test
     needs at least one. Give more pairs, or set data.split=random.

$ printf 'one\teins\ntwo\tzwei\nthree\tdrei\nfour\tvier\n' > pairs.tsv; touch none.tsv
$ nmt prepare pairs.tsv --test none.tsv
nmt: none.tsv leaves the test split empty. Each of train, validation, test needs at least one pair. Give another file.

$ printf 'one two\teins\ntwo two\tzwei\nthree two\tdrei\nfour two\tvier\n' > pairs.tsv
$ nmt prepare pairs.tsv --set data.max_tokens=1
nmt: The train split would be empty: all of its pairs exceed data.max_tokens 1 or data.max_length_ratio 9.0. Each of
     train, validation, test needs at least one pair. Raise the limits, or set them to null.

$ printf 'one two\teins\ntwo two\tzwei\nthree two\tdrei\nfour two\tvier\n' > pairs.tsv
$ nmt prepare pairs.tsv --set data.tokenizer=subword --set data.vocabulary_size=20
nmt: A subword vocabulary of 20 ids is too small. It must hold every character of the corpus and the 256 bytes: 273
     ids with the special ones. Set data.vocabulary_size=548 or more, or data.tokenizer=char.

& nmt.data.pair_store.shutil.disk_usage = lambda folder: shutil._ntuple_diskusage(0, 0, 10)
$ nmt prepare english-german-both.pkl --name again
nmt: The disk of data is too small: 10 bytes are free after 11,814 bytes of text. Preparing takes twice the size of
     the unpacked corpus. Nothing was kept. Free some space, or prepare the first pairs alone with --set
     data.n_sentences=1000000

# --- configurations --------------------------------------------------------------------------------------------------

$ nmt train --config bas.yaml
nmt: There is no configuration 'bas.yaml' (did you mean 'base.yaml'?); looked for: bas.yaml, configs/bas.yaml,
     /opt/nmt/configs/bas.yaml, /opt/configs/bas.yaml. Check the name, or give the full path.

$ printf 'model:\n  haeds: 4\n' > my.yaml
$ nmt train --config my.yaml
nmt: my.yaml, line 2: unknown key 'model.haeds' (did you mean 'heads'?).

$ printf 'training: {epochs: 0, batch_size: many, dropout: 0.1}\nmodle: {}\n' > my.yaml
$ nmt train --config my.yaml
nmt: my.yaml, line 1: training.epochs is 0, but must be greater than or equal to 1. Change the value, or leave the key
     out.
my.yaml, line 1: training.batch_size is 'many', but must be a valid integer. Change the value, or leave the key out.
my.yaml, line 1: unknown key 'training.dropout' (it belongs to another section: 'model.dropout').
my.yaml, line 2: unknown key 'modle' (did you mean 'model'?).

$ printf 'epochs: 3\nmodel: 7\nspeed: high\n' > my.yaml
$ nmt train --config my.yaml
nmt: my.yaml, line 2: model is 7, but must be a section of keys. Change the value, or leave the key out.
my.yaml, line 1: unknown key 'epochs' (it belongs in a section: 'training.epochs').
my.yaml, line 3: unknown key 'speed' (known: data, model, training, decoding).

$ printf 'training: {speed: high}\n' > my.yaml
$ nmt train --config my.yaml
nmt: my.yaml, line 1: unknown key 'training.speed' (did you mean 'seed'?).

$ printf 'data: {dataset: 7}\n' > my.yaml
$ nmt train --config my.yaml
nmt: my.yaml, line 1: data.dataset is 7, but must be a valid string, in quotes where it looks like another type.
     Change the value, or leave the key out.

$ printf 'training:\n  epochs: 3\n  epochs: 4\n' > my.yaml
$ nmt train --config my.yaml
nmt: my.yaml, line 3 sets training.epochs again. A key is set once. Remove one of the two lines.

$ printf 'model: [1, 2' > my.yaml
$ nmt train --config my.yaml
nmt: my.yaml, line 1, column 13 is not valid YAML: expected ',' or ']', but got '<stream end>'. Correct it, or put
     text in quotes.

$ printf 'model: &m {heads: 4}\ntraining: *m\n' > my.yaml
$ nmt train --config my.yaml
nmt: my.yaml, line 2, column 11 is not valid YAML: the alias *m repeats a value. Aliases are not supported. Correct
     it, or put text in quotes.

$ printf 'training: {epochs: 1234567890123456789012345678901234567890123}\n' > my.yaml
$ nmt train --config my.yaml
nmt: my.yaml, line 1, column 20 is not valid YAML: the integer has more than 40 characters. Correct it, or put text in
     quotes.

$ echo 'just text' > my.yaml
$ nmt train --config my.yaml
nmt: my.yaml holds no sections, but a str. A configuration holds the sections data, model, training, decoding. Start
     from one of the files in configs/.

$ printf 'model: {architecture: "f\xfcnf"}\n' > my.yaml
$ nmt train --config my.yaml
nmt: my.yaml, line 1 is not UTF-8: it holds the byte 0xfc. Convert it, for example with iconv -f latin1 -t utf-8.

$ python -c "open('my.yaml', 'w').write('# much\n' * 30_000)"
$ nmt train --config my.yaml
nmt: my.yaml is too long. A configuration has at most 131,072 bytes. Start from one of the files in configs/.

$ python -c "open('my.yaml', 'w').write('model: ' + 5_000 * '[')"
$ nmt train --config my.yaml
nmt: my.yaml is nested too deeply. A configuration is four flat sections. Start from one of the files in configs/.

$ printf 'training:\n  pack: maybe\n' > my.yaml
$ nmt train --config my.yaml
nmt: my.yaml, line 2: training.pack, now called training.remove_padding, is 'maybe', but must be a valid boolean.
     Change the value, or leave the key out.

$ printf 'training:\n  pack: true\n  remove_padding: true\n' > my.yaml
$ nmt train --config my.yaml --set training.epochs=3
nmt: my.yaml, line 1, with --set training.epochs=3: training: remove_padding is set twice, once by its older name
     pack. Leave out pack.

$ printf 'format: 3\n' > my.yaml
$ nmt train --config my.yaml --set training.epochs=2
nmt: my.yaml has format 3. This version of nmt reads format 1 or 2. Update nmt, or use the version that wrote the
     file.

$ nmt train --set epochs=1
nmt: --set 'epochs=1' has no section, key and value. Write --set section.key=value, as in --set training.epochs=5.

$ nmt train --set training.epochs=[1
nmt: --set 'training.epochs=[1' has a value that is not valid YAML. Put the value in quotes.

$ nmt train --set training.epochs=0
nmt: --set training.epochs=0: training.epochs is 0, but must be greater than or equal to 1. Change the value, or leave
     the key out.

$ nmt train --set model.epochs=1
nmt: --set model.epochs=1: unknown key 'model.epochs' (it belongs to another section: 'training.epochs').

$ nmt prepare english-german-both.pkl --set data.train_share=0.9
nmt: --set data.train_share=0.9: data: train_share + validation_share + test_share is 0.9 + 0.1 + 0.1 = 1.1. The three
     shares add up to 1. Change another share too.

$ nmt prepare english-german-both.pkl --set 'data.dataset=my data'
nmt: --set data.dataset=my data: data: 'my data' cannot be the name of a dataset. A name starts with a letter or digit
     and holds only letters, digits and . _ - (at most 100 characters). Choose another name.

$ nmt train --config base.yaml --set model.heads=5
nmt: configs/base.yaml, line 2, with --set model.heads=5: model: heads is 5 and d_model is 32. heads must divide
     d_model unless head_size is set. Nearest: heads 4.

$ nmt train --config base.yaml --set model.positions=rotary --set model.head_size=5
nmt: configs/base.yaml, line 2, with --set model.positions=rotary --set model.head_size=5: model: positions is
     'rotary' and heads have the size 5. Rotary positions turn pairs of channels: the size must be even. Set an even
     head_size, or positions: sinusoidal.

$ nmt train --config base.yaml --set model.word_embedding=sinusoidal
nmt: configs/base.yaml, line 2, with --set model.word_embedding=sinusoidal: model: word_embedding is 'sinusoidal' and
     tie_embeddings is 'output'. A fixed embedding cannot be tied to a trained output layer. Set tie_embeddings: none.

$ nmt train --config base.yaml --set model.share_decoder_norm=true --set model.norm=pre
nmt: configs/base.yaml, line 2, with --set model.share_decoder_norm=true --set model.norm=pre: model:
     share_decoder_norm is true and norm is 'pre'. share_decoder_norm needs norm: post. Set norm: post, or
     share_decoder_norm: false.

$ echo 'model: {architecture: recurrent, bidirectional: true, encoder_width: 300}' > rnn.yaml
$ nmt train --config rnn.yaml
nmt: rnn.yaml, line 1: model: first_state is 'final', width is 512 and annotations are 600 wide, 300 in each
     direction. The decoder can start from the encoder's last states if they are as wide as its own. Set encoder_width:
     half of width, or first_state: linear.

$ echo 'model: {architecture: recurrent, attention: none, window: local-p}' > rnn.yaml
$ nmt train --config rnn.yaml
nmt: rnn.yaml, line 1: model: window is 'local-p' and attention is 'none'. A window is a part of the source that
     attention sees. Set window: global, or another attention.

$ printf 'model: {architecture: recurrent}\ntraining: {xla: true, remove_padding: false}\n' > rnn.yaml
$ nmt train --config rnn.yaml
nmt: rnn.yaml, line 2: training.xla is True, but model.architecture is 'recurrent', whose shapes depend on the data;
     XLA compiles fixed shapes. Change the value, or leave the key out.

$ echo 'model: {word_embedding: sinusoidal, tie_embeddings: none}' > fixed.yaml
$ nmt train --config fixed.yaml --set training.initial_embeddings=cooccurrence
nmt: --set training.initial_embeddings=cooccurrence: training.initial_embeddings is 'cooccurrence', but the model has no
     trained word embeddings. Change the value, or leave the key out.

$ nmt train --config tiny.yaml --set training.r_drop=5 --set model.dropout=0
nmt: --set training.r_drop=5: training.r_drop is 5.0, but the model has no dropout, without which two passes are the
     same. Change the value, or leave the key out.

$ echo 'model: {architecture: recurrent, tie_embeddings: all}' > rnn.yaml
$ nmt train --config rnn.yaml
nmt: The dataset has 13 ids on the source side and 14 on the target side; model.tie_embeddings: all needs one
     vocabulary for both. Prepare the dataset with --set data.joint_vocabulary=true, or set
     model.tie_embeddings=output.

$ printf 'model: {architecture: recurrent, width: 8}\ntraining: {epochs: 1}\n' > rnn.yaml
$ nmt train --config rnn.yaml
$ nmt plot positions --run rnn
nmt: Run 'rnn' has a model of architecture 'recurrent', which has no position embedding. Choose another figure, or a run
     with a Transformer.

$ printf 'model: {architecture: recurrent, width: 8}\ntraining: {epochs: 1}\n' > rnn.yaml
$ nmt train --config rnn.yaml
$ nmt train --config base.yaml --run rnn --allow-changes
nmt: Run 'rnn' has a model of architecture 'recurrent', and the configuration asks for 'transformer'. A run keeps its
     architecture. Start another run with --run NAME.

$ printf 'model: {architecture: recurrent, width: 8}\ntraining: {epochs: 1, optimizer: muon}\n' > rnn.yaml
$ nmt train --config rnn.yaml
$ nmt train --config rnn.yaml --set training.optimizer=adam --allow-changes
nmt: Run 'rnn' trains with optimizer 'muon', and the configuration asks for 'adam'. A run keeps its optimizer, whose
     state it goes on from. Start another run with --run NAME, or from the weights of this one with --from rnn.

$ nmt train --config base.yaml --set training.best_by=bleu
nmt: configs/base.yaml, line 3, with --set training.best_by=bleu: training: best_by is bleu and decode_validation is
     0. A score needs translations of validation sentences. Set training.decode_validation=500.

$ nmt train --config base.yaml --set training.xla=true
nmt: configs/base.yaml, line 3, with --set training.xla=true: training: xla and remove_padding are both true. XLA
     needs shapes that do not depend on the data, and removal of padding makes them depend on it. Set
     training.remove_padding=false.

$ nmt train --config base.yaml --set training.xla=true --set training.remove_padding=false --set training.eager=true
nmt: configs/base.yaml, line 3, with --set training.xla=true --set training.remove_padding=false --set
     training.eager=true: training: xla and eager are both true. XLA compiles a traced step. Set training.eager=false,
     or training.xla=false.

$ nmt train --config base.yaml --set training.peak_learning_rate=0.001
nmt: configs/base.yaml, line 3, with --set training.peak_learning_rate=0.001: training: schedule is noam and
     peak_learning_rate is 0.001. noam computes its peak from d_model and warmup_steps. Set schedule to inverse_sqrt,
     which falls likewise, to cosine or to linear; or scale the peak of noam with learning_rate_scale.

$ nmt train --config base.yaml --set training.schedule=cosine
nmt: configs/base.yaml, line 3, with --set training.schedule=cosine: training: schedule is cosine and
     peak_learning_rate is null. All schedules but noam need a peak. Set it, for example to 0.0005, or set schedule to
     noam.

$ nmt train --set training.schedule=cosine --set training.peak_learning_rate=1 --set training.learning_rate_scale=2
nmt: The recipe, section training, with --set training.schedule=cosine --set training.peak_learning_rate=1 --set
     training.learning_rate_scale=2: training: schedule is cosine and learning_rate_scale is 2. Only noam has a scale;
     the peak of the others is peak_learning_rate. Set training.learning_rate_scale=1, and the intended peak as
     peak_learning_rate.

$ nmt train --config base.yaml --set training.decay_steps=100
nmt: configs/base.yaml, line 3, with --set training.decay_steps=100: training: schedule is noam and decay_steps is
     100. Only cosine and linear fall to a final learning rate. Leave the key out, or set schedule to cosine or
     linear.

$ nmt train --set training.schedule=linear --set training.peak_learning_rate=1e-4 --set training.final_learning_rate=1
nmt: The recipe, section training, with --set training.schedule=linear --set training.peak_learning_rate=1e-4 --set
     training.final_learning_rate=1: training: final_learning_rate is 1 and peak_learning_rate is 0.0001. The learning
     rate falls from the peak to the final value. Lower final_learning_rate.

# --- nmt train -------------------------------------------------------------------------------------------------------

$ nmt train --set model.heads=5
nmt: The recipe, section model, with --set model.heads=5: model: heads is 5 and d_model is 128. heads must divide
     d_model unless head_size is set. Nearest: heads 4.

$ nmt train --minutes 0
nmt: --minutes is 0. It is the time of training, more than 0. Change the value.

$ nmt train --minutes 5 --set training.epochs=3
nmt: --minutes 5 chooses the number of epochs; received it with --set training.epochs. Leave out one of the two.

$ nmt train --minutes 5 --set training.micro_batches=2 --workers 2
nmt: --minutes 5 measures the speed of one process; received it with several workers. Leave it out, and give the number
     of epochs: --set training.epochs=N. nmt train --minutes M --dry-run, without workers, says how many fit.

& nmt.recipes.budget.measured_speed = lambda *_: __import__('nmt.recipes.budget').recipes.budget.Speed(0.1, 900, 0.0)
$ nmt train --config base.yaml --run new --minutes 1
nmt: --minutes is 1, which has no room for an epoch on dataset 'english-german-both': an epoch takes about 90 s here
     (100 ms a step, measured). Give --minutes 1.5 or more, or prepare fewer pairs with --set data.n_sentences=N.

$ nmt train --dataset english
nmt: There is no prepared dataset 'english'. Prepared: english-german-both.

$ rm checkpoints/base/config.yaml
$ nmt train --config base.yaml
nmt: checkpoints/base exists already. It is never overwritten. Choose another name, or move it away.

$ nmt train --config base.yaml --set model.heads=2
nmt: Run 'base' was started with other settings or data: model.heads: 4 before, 2 now. A run keeps those that it was
     started with. Start another run with --run NAME, undo the change, or, if it is meant, give --allow-changes.

$ nmt prepare english-german-both.pkl --name other --set data.seed=7
$ nmt train --run base --dataset other
nmt: Run 'base' was started with other settings or data: dataset: 'english-german-both' before, 'other' or new content
     now. A run keeps those that it was started with. Start another run with --run NAME, undo the change, or, if it is
     meant, give --allow-changes.

$ nmt train --run new --set model.tie_embeddings=all
nmt: The dataset has 13 ids on the source side and 14 on the target side; model.tie_embeddings: all needs one
     vocabulary for both. Prepare the dataset with --set data.joint_vocabulary=true, or set
     model.tie_embeddings=output.

$ nmt train --run new --set model.positions=learned --set model.max_positions=5
nmt: The longest source of the train split has 6 tokens with bos and eos; this model reads at most 5. Set
     model.max_positions=6, or model.positions=sinusoidal.

$ nmt train --run new --from bass
nmt: There is no run 'bass' in checkpoints/ (did you mean 'base'?). There are: base.

$ nmt train --run new --from base:9
nmt: Run 'base' has no weights of epoch '9'. An epoch is a number, best, last or average. Kept: 1, 2.

& nmt.training.trainer.measure_fit = lambda *_: Fit([Demand(64, 9, ((0, 0), (64, 640_000_000)))] * 2, [], 5_000_000, 0)
$ nmt train --config base.yaml --run new --set training.batch_size=auto
nmt: No batch fits into memory: the smallest takes 10 MB, and 5 MB are free, of which 85% may be used. Besides weights
     and optimizer, a batch takes memory for its tokens and for sums of gradients. End other programs, make the model
     smaller, such as --set model.d_model=256, or drop long sentences with nmt prepare --set data.max_tokens=100.

& nmt.training.optimization.batch_limit.BatchLimit.bounds = lambda *_: (_ for _ in ()).throw(ShortageError("on a pair"))
$ nmt train --config base.yaml --run new
nmt: Memory ran out before training on a pair. Batches are computed in parts where that helps; here it does not. Nothing
     has been saved. End other programs, make the model smaller, or drop long sentences with nmt prepare --set
     data.max_tokens=100; another run takes smaller batches with --set training.batch_size=16 --set
     training.micro_batches=2.

& nmt.decoding.model_search.ModelSearch.find = lambda *_, **__: (_ for _ in ()).throw(exhausted())
$ nmt translate 'im thirsty'
nmt: Memory ran out. A batch of sentences is translated at once and must fit. Take smaller batches, with --batch-size 32
     or in nmt train with --set decoding.batch_size=32, or end other programs.

$ printf '{}' > checkpoints/base/batch_size.json
$ nmt info --json
nmt: checkpoints/base/batch_size.json is damaged: it has no format. nmt train wrote it. Restore a copy, or delete it.

$ printf '{"format": 1, "batch_type": "words"}' > checkpoints/base/batch_size.json
$ nmt info --json
nmt: checkpoints/base/batch_size.json is damaged: Input should be 'sentences' or 'tokens'. nmt train wrote it. Restore a
     copy, or delete it.

& nmt.training.estimate.free_bytes = lambda folder: 1_000
$ nmt train --config base.yaml --run new
nmt: Not enough disk space: checkpoints/new needs 979 KB more, 1 KB are free. Free some, or keep the weights of fewer
     epochs, 89 KB each: --set training.max_to_keep=2 --set training.average_last=1

& lock checkpoints/base/lock process 4711 on atlas, since 2026-03-01T09:30:00+01:00
$ nmt train --run base --set training.epochs=3
nmt: Run 'base' is in use by process 4711 on atlas, since 2026-03-01T09:30:00+01:00. Only one process at a time may
     write to it. Wait until that process ends, or stop it.

$ rm -r checkpoints/base/state/*16 && rm checkpoints/base/state/*/state.json
$ nmt train --run base --set training.epochs=3
nmt: Run 'base' cannot go on: checkpoints/base/state/step-00000008/state.json is missing. Training resumes from a
     whole state. The run's weights, where they are whole, still translate; to train, start another run with --run
     NAME.

$ rm -r checkpoints/base/state/*16 && truncate -s 100 checkpoints/base/state/*/state.json
$ nmt train --run base --set training.epochs=3
nmt: Run 'base' cannot go on: checkpoints/base/state/step-00000008/state.json is damaged: Expecting value: line 7
     column 16 (char 100). Training resumes from a whole state. The run's weights, where they are whole, still
     translate; to train, start another run with --run NAME.

$ rm -r checkpoints/base/state/*16 && sed -i s/metrics/metric/ checkpoints/base/state/*/state.json
$ nmt train --run base --set training.epochs=3
nmt: Run 'base' cannot go on: checkpoints/base/state/step-00000008/state.json is damaged: it is not as it was saved.
     Training resumes from a whole state. The run's weights, where they are whole, still translate; to train, start
     another run with --run NAME.

$ rm -r checkpoints/base/state/*16 && rm checkpoints/base/state/*/metrics.jsonl
$ nmt train --run base --set training.epochs=3
nmt: Run 'base' cannot go on: checkpoints/base/state/step-00000008/metrics.jsonl cannot be read: No such file or
     directory. Training resumes from a whole state. The run's weights, where they are whole, still translate; to
     train, start another run with --run NAME.

$ rm -r checkpoints/base/state/*16 && echo >> checkpoints/base/state/*/metrics.jsonl
$ nmt train --run base --set training.epochs=3
nmt: Run 'base' cannot go on: checkpoints/base/state/step-00000008/metrics.jsonl is damaged: its SHA-256 is not the
     one recorded when it was saved. Training resumes from a whole state. The run's weights, where they are whole,
     still translate; to train, start another run with --run NAME.

$ rm -r checkpoints/base/state/*16
$ sed -i 's/"format": 2/"format": 3/' checkpoints/base/state/*/state.json
$ nmt train --run base --set training.epochs=3
nmt: Run 'base' cannot go on: checkpoints/base/state/step-00000008/state.json has format 3; this version of nmt reads
     formats 1 and 2. Update nmt. Training resumes from a whole state. The run's weights, where they are whole, still
     translate; to train, start another run with --run NAME.

$ rm -r checkpoints/base/state/*16 && rm checkpoints/base/state/*/optimizer.safetensors
$ nmt train --run base --set training.epochs=3
nmt: Run 'base' cannot go on: checkpoints/base/state/step-00000008/optimizer.safetensors is missing. Restore a copy of
     it. Training resumes from a whole state. The run's weights, where they are whole, still translate; to train,
     start another run with --run NAME.

$ rm -r checkpoints/base/state/*16 && truncate -s 100 checkpoints/base/state/*/optimizer.safetensors
$ nmt train --run base --set training.epochs=3
nmt: Run 'base' cannot go on: checkpoints/base/state/step-00000008/optimizer.safetensors is damaged: Error while
     deserializing header: invalid header length. Restore a copy of it. Training resumes from a whole state. The run's
     weights, where they are whole, still translate; to train, start another run with --run NAME.

$ rm -r checkpoints/base/state/*16
$ cp checkpoints/base/weights/epoch-0002.safetensors checkpoints/base/state/*/weights.safetensors
$ nmt train --run base --set training.epochs=3
nmt: Run 'base' cannot go on: checkpoints/base/state/step-00000008/weights.safetensors is not the file that was saved
     with those beside it. Restore a copy of it. Training resumes from a whole state. The run's weights, where they
     are whole, still translate; to train, start another run with --run NAME.

$ sed -i 's/d_ff: 64/d_ff: 32/' checkpoints/base/config.yaml
$ nmt train --run base --set training.epochs=3
nmt: Run 'base' cannot go on: checkpoints/base/state/step-00000016 is the state of another model:
     decoder_1/feed_forward/inner/bias has shape [64] in the file and [32] in the model.
     checkpoints/base/state/step-00000008 is the state of another model: decoder_1/feed_forward/inner/bias has shape
     [64] in the file and [32] in the model. Training resumes from a whole state. The run's weights, where they are
     whole, still translate; to train, start another run with --run NAME.

$ rm -r checkpoints/base/state
$ nmt train --run base --set training.epochs=3
nmt: Run 'base' cannot go on: it has weights, but checkpoints/base/state holds no state. Training resumes from a
     state. Restore a copy of it, or start another run from these weights: --run NAME --from base.

# The dataset

$ truncate -s 100 data/english-german-both/train.source.tokens.npy
$ nmt train --run new
nmt: Dataset 'english-german-both' is damaged: the SHA-256 of data/english-german-both/train.source.tokens.npy differs
     from the one in its manifest. Prepare it again with nmt prepare --overwrite.

$ rm data/english-german-both/train.source.tokens.npy
$ nmt train --run new
nmt: Dataset 'english-german-both' is damaged: data/english-german-both/train.source.tokens.npy cannot be read: No
     such file or directory. Prepare it again with nmt prepare --overwrite.

$ echo > data/english-german-both/manifest.json
$ nmt train --run new
nmt: data/english-german-both/manifest.json is damaged: Expecting value: line 2 column 1 (char 1). A dataset's
     manifest is JSON. Restore a copy, or prepare the corpus again with --overwrite.

$ sed -i s/prepared_at/prepared_on/ data/english-german-both/manifest.json
$ nmt train --run new
nmt: Manifest data/english-german-both/manifest.json is damaged: prepared_at: Field required. Restore a copy, or
     prepare the corpus again with --overwrite.

$ sed -i 's/"format": 4/"format": 5/' data/english-german-both/manifest.json
$ nmt train --run new
nmt: Manifest data/english-german-both/manifest.json has format 5. This version of nmt reads manifests of formats 1
     to 4. Use the version of nmt that prepared the dataset, or prepare the corpus again with --overwrite.

$ sed -i 's/"validation": {/"trial": {/' data/english-german-both/manifest.json
$ nmt train --run new
nmt: Manifest data/english-german-both/manifest.json is damaged: splits has the keys train, trial, test instead of
     train, validation, test. Restore a copy, or prepare the corpus again with --overwrite.

$ sed -i '/"splits"/,$ s/"source":/"english":/' data/english-german-both/manifest.json
$ nmt train --run new
nmt: Manifest data/english-german-both/manifest.json is damaged: counts have the keys english, target instead of
     source, target. Restore a copy, or prepare the corpus again with --overwrite.

& nmt.storage.json_file.MAX_JSON = 1000
$ nmt train --run new
nmt: data/english-german-both/manifest.json is too long. A dataset's manifest has at most 1,000 bytes. Restore a copy,
     or prepare the corpus again with --overwrite.

$ python -c "import numpy as np; np.save('data/english-german-both/train.source.tokens.npy', np.zeros(3))"
$ sha256sum data/*/train.source.tokens.npy | cut -c-64 > sum
$ sed -i "/train.source.tokens/ s/: \".*\"/: \"$(cat sum)\"/" data/*/manifest.json
$ nmt train --run new
nmt: Dataset 'english-german-both' is damaged: data/english-german-both/train.source.tokens.npy and
     train.source.offsets.npy hold no sentences (tokens are float64 of shape (3,) instead of one-dimensional uint8).
     Prepare it again with nmt prepare --overwrite.

$ nmt prepare english-german-both.pkl --name characters --set data.tokenizer=char
$ nmt train --run new --from base --dataset characters
nmt: The tokenizers of run 'base' are not those of dataset 'characters', which is to start from its weights. Weights
     know the ids of their own tokenizers alone. Prepare the data with them: nmt prepare FILE --tokenizer-of base
     --name NAME

# A run that diverges

& leaves checkpoints/new
$ nmt train --run new --config base.yaml --set training.learning_rate_scale=1e30 --set training.precision=float32
nmt: Training diverged: step 2, batch 2 of epoch 1; nothing has been saved. Loss, gradients and weights must stay
     finite. Start another run with a lower rate, such as --set training.learning_rate_scale=5e+29, with more
     training.warmup_steps or with --set training.clip_norm=1.

$ sed -i 's/training: {/training: {precision: float32, /' configs/base.yaml
& leaves checkpoints/new
$ nmt train --run new --config base.yaml --set training.learning_rate_scale=1e30 --set training.skip_nonfinite=2
nmt: Training diverged: step 5, batch 5 of epoch 1, after 3 skipped steps; nothing has been saved. Loss, gradients and
     weights must stay finite. Start another run with a lower rate, such as --set training.learning_rate_scale=5e+29,
     with more training.warmup_steps or with --set training.clip_norm=1.

$ nmt info --run base --config base.yaml
nmt: A description is that of a run or of a configuration; received --run base and --config base.yaml. Leave one of them
     out.

$ nmt info --set model.d_model=8
nmt: --set is for the model of a configuration; received it without --config. Add --config FILE, or leave it out.

# --- nmt runs --------------------------------------------------------------------------------------------------------

$ rm -r checkpoints
$ nmt runs
nmt: No run is in checkpoints/ yet. Train first, for example: nmt train

$ nmt runs --sort scor
nmt: --sort is 'scor' (did you mean 'score'?). Orders are name, date, score.

$ nmt runs --dataset english
nmt: No run was trained on a dataset 'english'. Runs are on: english-german-both.

# --- nmt plot, nmt info ----------------------------------------------------------------------------------------------

$ nmt plot loss
nmt: There is no figure 'loss' (did you mean 'losses'?). See nmt plot --help

$ nmt plot losses --run bass
nmt: There is no run 'bass' in checkpoints/ (did you mean 'base'?). There are: base.

& matplotlib.backend_bases.FigureCanvasBase.filetypes = dict.fromkeys(["pdf", "png", "svg"])
$ nmt plot losses --output curve.xyz
nmt: The figure cannot be written to 'curve.xyz': the suffix must name its format. Known: pdf, png, svg.

$ nmt plot losses --output configs/base.yaml/curve.png
nmt: configs/base.yaml/curve.png cannot be written: File exists. Existing files are unchanged. Free some space, or
     choose a writable folder, then repeat the command.

$ nmt plot bleu
nmt: Run 'base' has no BLEU to draw. Training measures it if training.decode_validation is not 0. Train with --set
     training.decode_validation=500, or score the run with nmt evaluate.

& leaves checkpoints/base/plots/losses.png
$ nmt plot losses --show
nmt: No window can be opened: --show needs a screen and a matplotlib backend for it. Open the file instead.

& matplotlib.figure.Figure.savefig = failing("xelatex not found")
$ nmt plot losses --output curve.pgf
nmt: matplotlib cannot write curve.pgf here: xelatex not found. Choose another suffix, such as .png.

$ rm checkpoints/base/metrics.jsonl
$ nmt plot losses
nmt: Run 'base' has not finished an epoch. The first point of a curve comes after the first epoch. Continue with:
     nmt train --run base

$ sed -i '3 s/loss/lost/' checkpoints/base/metrics.jsonl
$ nmt plot losses
nmt: checkpoints/base/metrics.jsonl, line 3 is damaged: validation_loss: Field required. Each line of a metrics file
     is a record that nmt train wrote. Remove the line.

$ sed -i '1 s/2/3/' checkpoints/base/metrics.jsonl
$ nmt plot losses --run base
nmt: checkpoints/base/metrics.jsonl has format 3. This version of nmt reads format 1 or 2. Update nmt, or use the
     version that wrote the file.

$ rm checkpoints/base/dataset.json
$ nmt info
nmt: A dataset's manifest is missing: checkpoints/base/dataset.json does not exist. Restore a copy, or prepare the
     corpus again with --overwrite.

$ sed -i 's/positions: sinusoidal/positions: learned/' checkpoints/base/config.yaml && rm -r checkpoints/base/weights
$ nmt plot positions
nmt: Run 'base' has not finished an epoch yet. Continue with: nmt train --run base

$ sed -i 's/positions: sinusoidal/positions: learned/' checkpoints/base/config.yaml
$ nmt plot positions
nmt: checkpoints/base/weights/epoch-0002.safetensors holds no source_positions/matrix, which the configuration of run
     'base' asks for. Restore a copy of it, or train that epoch again.

# Figures of the lesson

$ nmt plot position-matrix --width 7
nmt: --width must be even; received 7. Each sine of the encoding has its cosine. Give --width 8.

$ nmt plot position-matrix --length 0
nmt: --length must be greater than or equal to 1; received '0'. See nmt plot position-matrix --help

$ nmt plot sinusoids --base nan
nmt: --base must be greater than 1 and at most 1,000,000,000,000; received nan. The paper has 10000. Give another base.

$ nmt plot position-matrix --length 100000 --width 512
nmt: --length 100000 times --width 512 is 51,200,000 values; a figure has at most 16,777,216. Give a smaller length or
     width.

$ nmt plot position-similarity --length 5000 --width 8
nmt: --length must be at most 4096 where positions are compared with each other; received 5000. Give a smaller length.

$ nmt plot position-columns --length 50 --position 50
nmt: --position 50 is not among the 50 positions from 0 to 49. Give a smaller one, or a greater --length.

$ nmt plot position-columns --width 8 --column 8
nmt: --column 8 is not among the 8 dimensions from 0 to 7. Give a smaller one, or a greater --width.

$ nmt plot position-table ' '
nmt: The sentence has 0 words. A table has from 1 to 32 rows, one a word. Give another sentence.

$ nmt plot position-table --width 18
nmt: --width must be at most 16 in a table; received 18. nmt plot position-matrix draws wider encodings.

$ nmt plot masks ''
nmt: The sentence has 0 words and 2 of padding. Masks are drawn of a word at least and of 40 tokens at most. Give
     another sentence, or less --pad.

$ nmt plot embeddings --length 3 'I am a robot'
nmt: Phrase 'I am a robot' has 4 tokens. Phrases of 1 to 3 tokens are drawn here. Give another phrase, or another
     --length.

$ nmt plot words a b c d e f g h i j k l m
nmt: A map shows the neighbours of 12 words at most; received 13. Give fewer.

$ nmt plot words thirst
nmt: 'thirst' is no token of the source vocabulary (did you mean 'thirsty'?). Training has not seen it. Give another
     word.

$ nmt plot words --neighbors 1 thirsty
nmt: A map needs 3 words at least; received 2. Give more words or --neighbors.

$ sed -i 's/word_embedding: trained/word_embedding: sinusoidal/' checkpoints/base/config.yaml
$ sed -i 's/tie_embeddings: output/tie_embeddings: none/' checkpoints/base/config.yaml
$ nmt plot words
nmt: Run 'base' has fixed word embeddings (model.word_embedding: sinusoidal), which training leaves as they are. Choose
     a run with trained ones.

$ cp checkpoints/base/tokenizer.target.json checkpoints/base/tokenizer.source.json
$ nmt plot words
nmt: checkpoints/base/weights/epoch-0002.safetensors has 13 word embeddings, and checkpoints/base/tokenizer.source.json
     has 14 ids. Restore a copy of the one that is not of run 'base'.

# Several runs, speed, scores

$ nmt plot compare
nmt: plot compare takes RUN...; received none. See nmt plot compare --help

$ nmt plot compare base bass
nmt: There is no run 'bass' in checkpoints/ (did you mean 'base'?). There are: base.

$ nmt plot compare base --metric los
nmt: --metric must be one of loss, accuracy, bleu, chrf, train-loss, train-accuracy, learning-rate; received 'los'.
     Choose one of these.

$ nmt plot compare base --by hours
nmt: --by must be one of steps, epochs, tokens, minutes; received 'hours'. Choose one of these.

$ nmt plot compare base --metric bleu --by steps
nmt: Run 'base' has no BLEU of validation translations by steps to draw. Training measures it if
     training.decode_validation is not 0. Leave it out, or continue with: nmt train --run base

$ for run in {a..z} {0..9}; do mkdir checkpoints/$run && cp checkpoints/base/*.* checkpoints/$run; done
$ nmt plot compare base a b c d e f g h i j k l m n o p q r s t u v w x y z 0 1 2 3 4 5 6 7 8 9
nmt: 37 runs were given. A comparison has at most 36, whose curves differ without colour. Give fewer runs.

$ rm checkpoints/base/metrics.jsonl
$ nmt plot speed
nmt: Run 'base' has no times to draw. Training records them every training.log_every steps, and at the end of an epoch.
     Continue with: nmt train --run base

$ nmt plot by-length scores.json
nmt: scores.json cannot be read: No such file or directory. Make it with: nmt evaluate --by-length --json > scores.json

$ echo '{"format": 1}' > scores.json
$ nmt plot by-length scores.json --run base
nmt: --run has no effect: scores.json holds the scores, so nothing is translated. Leave out --run or the file.

$ echo '{"format": 1}' > scores.json
$ nmt plot by-length scores.json
nmt: scores.json is no evaluation: nmt: Field required. Make it with: nmt evaluate --by-length --json > scores.json

$ truncate -s 70000000 scores.json
$ nmt plot by-length scores.json
nmt: scores.json is no evaluation: it has more than 67,108,864 bytes. Make it with: nmt evaluate --by-length --json >
     scores.json

$ echo 'ich bin durstig' > a.de
$ cp a.de b.de
$ echo 'from nmt.evaluation.evaluate import evaluate' > made.py
$ echo 'found = evaluate([], ["a.de"], references=["b.de"])' >> made.py
$ echo 'open("scores.json", "w").write(found.record.model_dump_json())' >> made.py
$ python -c "exec(open('made.py').read(), {})"
$ nmt plot by-length scores.json
nmt: scores.json has no scores by source length, for it was made without --by-length. Make it with: nmt evaluate
     --by-length --json > scores.json

# An alignment

$ nmt plot alignment
nmt: plot alignment takes SENTENCE; received none. See nmt plot alignment --help

$ nmt plot losses 'im thirsty'
nmt: plot losses takes no argument; received 'im thirsty'. See nmt plot losses --help

$ nmt plot losses --head 1
nmt: plot losses has no option '--head' (did you mean '--help'?). See nmt plot losses --help

$ nmt plot alignment '?!'
nmt: Sentence '?!' has no words after normalization. Attention needs a word at least. Give another sentence.

$ nmt plot alignment --layer 0 'im thirsty'
nmt: --layer must be greater than or equal to 1; received '0'. See nmt plot alignment --help

$ nmt plot alignment --layer 2 'im thirsty'
nmt: The attention of run 'base' has no layer 2. Its layers: 1. Give one of these, or leave --layer out.

$ nmt plot alignment --head 5 'im thirsty'
nmt: The attention of run 'base' has no head 5. Its heads: 1-4. Give one of these, or leave --head out.

$ printf 'model: {architecture: recurrent, width: 8, attention: none}\ntraining: {epochs: 1}\n' > configs/plain.yaml
$ nmt train --config plain.yaml
$ nmt plot alignment --run plain 'im thirsty'
nmt: This model of architecture 'recurrent' has no attention. Alignments and figures of attention need it. Choose a
     run whose model has attention.

$ nmt plot alignment --target '?!' 'im thirsty'
nmt: Translation '?!' has no words after normalization. Give a translation with a word.

$ nmt plot attention --kind crss 'im thirsty'
nmt: There is no attention 'crss' (did you mean 'cross'?). Known: encoder, decoder, cross.

$ nmt plot attention --layer every 'im thirsty'
nmt: --layer is the number of a layer, from 1, or all; received 'every'. Give such a value.

$ nmt plot attention --kind encoder --layer 2 'im thirsty'
nmt: The attention of run 'base' has no layer 2. Its layers: 1. Give one of these, or leave --layer out.

# --- nmt tokens ------------------------------------------------------------------------------------------------------

$ nmt tokens --run base --dataset english-german-both 'im thirsty'
nmt: Tokenizers come from a run or from a dataset; received --run base and --dataset english-german-both. Leave one of
     them out.

$ nmt tokens --side traget 'im thirsty'
nmt: There is no side 'traget' (did you mean 'target'?). Known: source, target, both.

$ nmt tokens --input letters.en
nmt: There is no file letters.en. Check the name, or give the full path.

# --- nmt samples, nmt average ----------------------------------------------------------------------------------------

$ sed -i /samples/d checkpoints/base/metrics.jsonl
$ nmt samples
nmt: Run 'base' has no sample translations. Training makes them at each validation if training.samples is not 0. Train
     with --set training.samples=3

$ nmt average
nmt: Epochs come from --last N or --epochs 12-16,20; received neither. Give one of them.

$ nmt average --last 2 --epochs 1,2
nmt: Epochs come from --last N or --epochs 12-16,20; received both. Give one of them.

$ nmt average --last 1
nmt: An average needs at least 2 epochs; received --last 1. Give more epochs.

$ nmt average --epochs 2
nmt: An average needs at least 2 epochs; received --epochs 2. Give more epochs.

$ nmt average --epochs one
nmt: 'one' names no epochs of run 'base'. Give numbers and ranges, such as 12-16,20.

$ nmt average --epochs 1-4
nmt: Run 'base' does not have the weights of epochs 1-4. An average needs the weights of each of its epochs. Choose
     from 1-2 with --epochs.

$ nmt average --last 3
nmt: Run 'base' does not have the weights of the last 3 epochs. An average needs the weights of each of its epochs.
     Choose from 1-2 with --epochs.

$ rm checkpoints/base/weights/*
$ nmt average --last 2
nmt: Run 'base' has no weights yet. The weights of an epoch are saved at its end. Continue with nmt train first.

$ nmt train --config base.yaml --run wide --set model.d_ff=128 --set training.epochs=1
$ cp checkpoints/wide/weights/epoch-0001.safetensors checkpoints/base/weights/epoch-0002.safetensors
$ nmt average --run base --last 2
nmt: checkpoints/base/weights/epoch-0002.safetensors holds the weights of another model than epoch 1. Only weights of
     one model can be averaged. Restore a copy of it.

# --- nmt translate ---------------------------------------------------------------------------------------------------

$ nmt translate --run bass 'im thirsty'
nmt: There is no run 'bass' in checkpoints/ (did you mean 'base'?). There are: base.

$ nmt translate --epoch 9 'im thirsty'
nmt: Run 'base' has no weights of epoch '9'. An epoch is a number, best, last or average. Kept: 1, 2.

$ nmt translate --epoch bets 'im thirsty'
nmt: Run 'base' has no weights of epoch 'bets' (did you mean 'best'?). An epoch is a number, best, last or average.
     Kept: 1, 2.

$ nmt translate --epoch average 'im thirsty'
nmt: Run 'base' has no averaged weights. Training ends with an average if training.average_last is 2 or more and the
     run has four epochs for each averaged epoch. Make one with nmt average, leave --epoch out, or give one of 1, 2.

$ rm -r checkpoints/base/weights checkpoints/base/metrics.jsonl
$ nmt translate 'im thirsty'
nmt: Run 'base' has not finished an epoch yet. Continue with: nmt train --run base

$ nmt translate --input ghost.txt
nmt: There is no file ghost.txt. Check the name, or give the full path.

$ nmt translate --input data
nmt: data cannot be read: Is a directory. Give the path of a text file.

$ printf 'im thirsty\nf\xfcnf\n' > in.txt
$ nmt translate --input in.txt
nmt: in.txt, line 2 is not UTF-8: it holds the byte 0xfc. Convert it, for example with iconv -f latin1 -t utf-8.

$ printf 'im thirsty\nf\xfcnf\n' | nmt translate
nmt: standard input, line 2 is not UTF-8: it holds the byte 0xfc. Convert it, for example with iconv -f latin1 -t
     utf-8.

$ nmt translate --input in.txt 'im thirsty'
nmt: Sentences come as arguments or from --input; received both. Leave one of them out.

$ nmt translate --n-best 2 'im thirsty'
nmt: --n-best 2 needs a beam of at least 2; received a beam of 1. Give --beam 2 or more.

$ nmt translate --beam 0 'im thirsty'
nmt: --beam is 0, but must be greater than or equal to 1. Change the value.

$ nmt translate --precision int8 'im thirsty'
nmt: --precision is 'int8', but must be 'auto', 'float32' or 'bfloat16'. Change the value.

$ nmt translate --sample --top-p 1.5 'im thirsty'
nmt: --top-p is 1.5, but must be less than or equal to 1. Change the value.

$ nmt translate --top-p 0.5 'im thirsty'
nmt: --top-p is for sampling; received it without --sample. Add --sample, or leave it out.

$ nmt translate --sample --beam 2 'im thirsty'
nmt: Words are drawn or searched for; received --sample and --beam. Leave one of them out.

$ nmt translate --beam 1 --length-penalty 1 'im thirsty'
nmt: --length-penalty needs beam search; received it with --beam 1. Give a wider beam, or leave --length-penalty out.

$ nmt translate --score --beam 2 'im thirsty'
nmt: --score reads translations and searches for none; received --beam too. Leave one of them out.

$ nmt translate --score 'im thirsty'
nmt: 'im thirsty' has 0 TABs. With --score a line is a sentence, a TAB and its translation. Two files can be joined
     with: paste SOURCES TRANSLATIONS

$ printf 'im thirsty\tich bin durstig\nim thirsty\n' > pairs.txt
$ nmt translate --score --input pairs.txt
nmt: pairs.txt, line 2 has 0 TABs. With --score a line is a sentence, a TAB and its translation. Two files can be
     joined with: paste SOURCES TRANSLATIONS

$ nmt translate --prefix 'ich xyz' 'im thirsty'
nmt: Prefix 'ich xyz' has the word 'xyz', which the model never saw in training. A prefix is made of words that the
     model can generate. Leave that word out.

$ nmt train --config base.yaml --run learned --set model.positions=learned --set model.max_positions=8
$ nmt translate --run learned 'im one two three four five six seven'
nmt: Too long: 'im one two three four five six seven' has 8 tokens. This model reads at most 6 tokens of source. Split
     the sentence, or train with model.max_positions=10, or model.positions=sinusoidal.

# A run that is damaged

$ truncate -s 1000 checkpoints/base/weights/epoch-0002.safetensors
$ nmt translate --epoch 2 'im thirsty'
nmt: checkpoints/base/weights/epoch-0002.safetensors is damaged: Error while deserializing header: invalid header
     length. Restore a copy of it.

$ sed -i '1 s/"format":"2"/"format":"3"/' checkpoints/base/weights/epoch-0002.safetensors
$ nmt translate --run base --epoch 2 'im thirsty'
nmt: checkpoints/base/weights/epoch-0002.safetensors has format 3. This version of nmt reads format 1 or 2. Update nmt,
     or use the version that wrote the file.

$ printf x | dd of=checkpoints/base/weights/epoch-0002.safetensors bs=1 seek=20000 conv=notrunc status=none
$ nmt translate --epoch 2 'im thirsty'
nmt: checkpoints/base/weights/epoch-0002.safetensors is damaged: its SHA-256 is not the one noted when it was saved.
     Restore a copy of it.

$ sed -i 's/d_ff: 64/d_ff: 32/' checkpoints/base/config.yaml
$ nmt translate 'im thirsty'
nmt: checkpoints/base/weights/epoch-0002.safetensors does not hold the weights of this model:
     decoder_1/feed_forward/inner/bias has shape [64] in the file and [32] in the model. Use the configuration that
     the weights were trained with.

$ sed -i 's/decoder_layers: 1/decoder_layers: 2/' checkpoints/base/config.yaml
$ nmt translate 'im thirsty'
nmt: checkpoints/base/weights/epoch-0002.safetensors does not hold the weights of this model: the file has no
     decoder_2/cross_attention/key/bias, the model has one. Use the configuration that the weights were trained with.

$ sed -i 's/positions: sinusoidal/positions: learned/' checkpoints/base/config.yaml
$ nmt translate 'im thirsty'
nmt: checkpoints/base/weights/epoch-0002.safetensors does not hold the weights of this model: the file has no
     source_positions/matrix, the model has one. Use the configuration that the weights were trained with.

$ sed -i 's/encoder_layers: 1/encoder_layers: 1000/' checkpoints/base/config.yaml
$ nmt translate 'im thirsty'
nmt: checkpoints/base/weights/epoch-0002.safetensors does not hold the weights of this model: the file has 22,240
     weights, the model 8,557,696. Use the configuration that the weights were trained with.

$ rm checkpoints/base/tokenizer.source.json
$ nmt translate 'im thirsty'
nmt: A tokenizer is missing: checkpoints/base/tokenizer.source.json does not exist. Restore a copy, or prepare the
     corpus again with --overwrite.

$ sed -i 's/"word"/"wort"/' checkpoints/base/tokenizer.source.json
$ nmt translate 'im thirsty'
nmt: Tokenizer checkpoints/base/tokenizer.source.json is damaged: Input tag 'wort' found using 'kind' does not match
     any of the expected tags: 'word', 'char', 'subword'. Restore a copy, or prepare the corpus again with
     --overwrite.

$ sed -i 's/"format": 2/"format": 3/' checkpoints/base/tokenizer.source.json
$ nmt translate 'im thirsty'
nmt: Tokenizer checkpoints/base/tokenizer.source.json has format 3. This version of nmt reads tokenizers of formats 1
     and 2. Use the version of nmt that wrote it, or prepare the corpus again with --overwrite.

$ sed -i 's/"im"/"one"/' checkpoints/base/tokenizer.source.json
$ nmt translate 'im thirsty'
nmt: Tokenizer checkpoints/base/tokenizer.source.json is damaged: its vocabulary holds a word twice. Restore a copy.

$ sed -i 's/"im"/"i m"/' checkpoints/base/tokenizer.source.json
$ nmt translate 'im thirsty'
nmt: Tokenizer checkpoints/base/tokenizer.source.json is damaged: its vocabulary of words holds 'i m'. Restore a copy.

$ sed -i 's/"im"/"\\ud800"/' checkpoints/base/tokenizer.source.json
$ nmt translate 'im thirsty'
nmt: Tokenizer checkpoints/base/tokenizer.source.json is damaged: its vocabulary holds half of a surrogate pair.
     Restore a copy.

$ echo '{"kind": "subword", "normalization": "nfkc", "algorithm": "bpe", "model_sha256": ""}' > subword
$ mv subword checkpoints/base/tokenizer.source.json
$ nmt translate 'im thirsty'
nmt: checkpoints/base/tokenizer.source.model is missing. The subword tokenizer checkpoints/base/tokenizer.source.json
     needs it. Restore a copy.

$ echo '{"kind": "subword", "normalization": "nfkc", "algorithm": "bpe", "model_sha256": ""}' > subword
$ mv subword checkpoints/base/tokenizer.source.json
$ echo model > checkpoints/base/tokenizer.source.model
$ nmt translate 'im thirsty'
nmt: checkpoints/base/tokenizer.source.model has changed: its SHA-256 differs from the one in
     checkpoints/base/tokenizer.source.json. Restore a copy.

$ echo model > checkpoints/base/tokenizer.source.model
$ cd checkpoints/base; echo '{"kind": "subword", "normalization": "nfkc", "algorithm": "bpe",' > tokenizer.source.json
$ cd checkpoints/base; echo '"model_sha256": "'$(sha256sum *.model | cut -c-64)'"}' >> tokenizer.source.json
$ nmt translate 'im thirsty'
nmt: checkpoints/base/tokenizer.source.model cannot be used: The sentencepiece model is damaged: INTERNAL:
     src/sentencepiece_processor.cc(109) [model_proto->ParseFromArray(serialized.data(), serialized.size())] . Restore
     a copy.

$ seq 100 | sed 's/^/im /' > text
$ python -c "from sentencepiece import *; SentencePieceTrainer.train(input='text', model_prefix='x', vocab_size=20)"
$ mv x.model checkpoints/base/tokenizer.source.model
$ cd checkpoints/base; echo '{"kind": "subword", "normalization": "nfkc", "algorithm": "bpe",' > tokenizer.source.json
$ cd checkpoints/base; echo '"model_sha256": "'$(sha256sum *.model | cut -c-64)'"}' >> tokenizer.source.json
$ nmt translate 'im thirsty'
nmt: checkpoints/base/tokenizer.source.model cannot be used: The sentencepiece model has other special ids than a
     model that nmt prepare trained. Restore a copy.

# --- nmt evaluate ----------------------------------------------------------------------------------------------------

$ nmt evaluate --metric blue
nmt: There is no metric 'blue' (did you mean 'bleu'?). Known: bleu, chrf, chrf++, ter.

$ nmt evaluate --tokenize 13
nmt: There is no tokenization '13' (did you mean '13a'?) for BLEU. Known: 13a, intl, zh, char, none.

$ nmt evaluate --metric chrf --tokenize char
nmt: --tokenize char has no effect on chrf: it is the tokenization of BLEU. Add --metric bleu, or leave --tokenize out.

$ nmt evaluate --report scores.pdf
nmt: A report cannot be written as '.pdf': its suffix must be .md or .html. Choose one of them.

$ nmt evaluate --figure lengths.png
nmt: --figure has no effect: it draws the scores by source length, which were not asked for. Add --by-length, or leave
     --figure out.

$ printf 'eins\n' > few.de
$ nmt evaluate --hypothesis few.de --reference few.de --by-length
nmt: --by-length cannot be computed: the source sentences are unknown. Sentences are grouped by the number of words of
     their source. Add --source FILE, or leave --by-length out.

$ nmt evaluate --run base --run base:1 --output out.txt
nmt: --output was given with base, base:1; it takes the translations of one run alone. Leave --output out.

$ nmt evaluate --run base --run base
nmt: System 'base' was given 2 times. Each system is compared once. Leave out its repeats.

$ nmt evaluate --run bass
nmt: There is no run 'bass' in checkpoints/ (did you mean 'base'?). There are: base.

$ nmt evaluate --epoch 9
nmt: Run 'base' has no weights of epoch '9'. An epoch is a number, best, last or average. Kept: 1, 2.

$ nmt evaluate --beam 1 --coverage-penalty 1
nmt: --coverage-penalty needs beam search; received it with --beam 1. Give a wider beam, or leave --coverage-penalty
     out.

$ nmt evaluate --hypothesis out.de --reference few.de --beam 4
nmt: --beam has no effect: only translations to score were given, so nothing is translated. Add --run, or leave --beam
     out.

$ nmt evaluate --hypothesis out.de
nmt: Received --hypothesis alone. A test set is a --source FILE with its --reference FILE, or the test split of a run's
     dataset. Add --reference FILE.

$ nmt evaluate --source few.en
nmt: Received --source alone. A test set is a --source FILE with its --reference FILE, or the test split of a run's
     dataset. Add --reference FILE.

$ nmt evaluate --reference few.de
nmt: Received --reference alone. A test set is a --source FILE with its --reference FILE, or the test split of a run's
     dataset. Add --source FILE.

$ nmt evaluate --resamples 100000000
nmt: 100,000,000 bootstrap resamples of 30 sentences would take 291 GiB of memory. All resamples are in memory at once,
     in at most 4 GiB. Give --resamples 1376592 or fewer; 0 gives scores alone.

$ nmt evaluate --source few.en --reference few.de
nmt: There is no file 'few.de'; looked for: few.de, data/few.de. Check the name, or give the full path.

$ printf 'one\ntwo\n' > few.en; printf 'eins\n' > few.de
$ nmt evaluate --source few.en --reference few.de
nmt: few.de has 1 and few.en has 2 lines. The files of a test set have a line for each sentence. Give files that belong
     together; an empty line stands for a missing sentence.

$ printf 'one\n' > few.en; printf 'eins\n' > few.de; touch out.de
$ nmt evaluate --source few.en --reference few.de --hypothesis out.de
nmt: few.de has 1 and out.de has 0 lines. The files of a test set have a line for each sentence. Give files that belong
     together; an empty line stands for a missing sentence.

$ touch few.en few.de
$ nmt evaluate --source few.en --reference few.de
nmt: few.de is empty. A test set needs at least one sentence. Give a file with one per line.

$ printf 'f\xfcnf\n' > few.de
$ nmt evaluate --source few.en --reference few.de
nmt: few.de, line 1 is not UTF-8: it holds the byte 0xfc. Convert it, for example with iconv -f latin1 -t utf-8.

$ rm -r data/english-german-both
$ nmt evaluate
nmt: Dataset 'english-german-both', which run 'base' was trained on, is not in data/. Restore it, or prepare it again
     with the same settings: nmt prepare english-german-both.pkl --name english-german-both --tokenizer-of base. Or
     score on files: --source FILE --reference FILE.

$ echo 'im one' >> data/english-german-both/test.source.txt
$ nmt evaluate
nmt: data/english-german-both/test.source.txt is missing or has changed. A dataset's files must be as nmt prepare wrote
     them. Restore a copy, or prepare the corpus again with --overwrite.

$ rm data/english-german-both/test.source.txt
$ nmt evaluate
nmt: data/english-german-both/test.source.txt is missing or has changed. A dataset's files must be as nmt prepare wrote
     them. Restore a copy, or prepare the corpus again with --overwrite.

$ nmt prepare english-german-both.pkl --overwrite --set data.seed=7
$ nmt evaluate
nmt: data/english-german-both is not the dataset that run 'base' was trained on: it holds other sentences, tokens or
     another split, so its test sentences may have been trained on. Restore the dataset of the run. Or score on files:
     --source FILE --reference FILE.

$ nmt prepare english-german-both.pkl --name other --set data.seed=7
$ cp -r checkpoints/base checkpoints/other && cp data/other/manifest.json checkpoints/other/dataset.json
$ nmt evaluate --run base --run other
nmt: The test split of 'other' (dataset other) differs from that of 'base' (dataset english-german-both). Runs are
     compared on the same sentences. Give sentences for both: --source FILE --reference FILE.

# --- nmt report ------------------------------------------------------------------------------------------------------

$ nmt report --run base --run base
nmt: --run base was given 2 times. A report shows each run once. Leave out its repeats.

$ nmt report --no-scores --scores-of scores.json
nmt: --scores-of scores.json contradicts --no-scores. Leave one of them out.

$ nmt report --no-attention --sentence 'im thirsty'
nmt: --sentence 'im thirsty' has no effect with --no-attention: it chooses what attention is shown of. Leave one of them
     out.

$ nmt report --output report.pdf
nmt: The report cannot be written to 'report.pdf': it is a page of HTML. Give a name in .html

$ echo mine > mine.html
$ nmt report --output mine.html --no-scores --no-attention
nmt: mine.html exists and is no report of nmt. A report replaces an earlier report alone. Choose another file with
     --output, or add --overwrite.

$ nmt report --scores-of scores.json
nmt: There is no file scores.json of scores. Scores of a report are what nmt evaluate --json prints. Write it: nmt
     evaluate --run base --json > scores.json

$ echo '{}' > scores.json
$ nmt report --scores-of scores.json --no-attention
nmt: scores.json is not what nmt evaluate --json prints: nmt: Field required. Write it again: nmt evaluate --run base
     --json > FILE

$ nmt report --no-scores --sentence '...'
nmt: Sentence '...' has no words after the normalization of run base. A map of attention needs a word at least. Give
     another sentence.

# --- nmt fetch -------------------------------------------------------------------------------------------------------

$ nmt fetch english-german
nmt: There is no public corpus 'english-german' (did you mean 'english-german-both'?). Known: english-german-both,
     english-german-lesson.

$ rm data/english-german-both.pkl
& server closes the connection
$ nmt fetch english-german-both
nmt: https://example.org/english-german-both.pkl could not be downloaded: Remote end closed connection without
     response. Nothing was kept. Run the same command again.

$ rm data/english-german-both.pkl
& server HTTP/1.1 404 Not Found|
$ nmt fetch english-german-both
nmt: https://example.org/english-german-both.pkl no longer exists (HTTP 404). Look for english-german-both.pkl
     elsewhere, and copy it to data/english-german-both.pkl.

$ rm data/english-german-both.pkl
& server HTTP/1.1 503 Service Unavailable|
$ nmt fetch english-german-both
nmt: https://example.org/english-german-both.pkl could not be downloaded: the server answered HTTP 503. Nothing was
     kept. Run the same command again.

$ rm data/english-german-both.pkl
& server HTTP/1.1 302 Found|Location: ftp://example.org/file|
$ nmt fetch english-german-both
nmt: ftp://example.org/file cannot be fetched. A download takes http or https. Nothing was fetched. Look at the
     address in a browser.

$ rm data/english-german-both.pkl
& server HTTP/1.1 200 OK|Content-Length: 5||pairs
$ nmt fetch english-german-both
nmt: https://example.org/english-german-both.pkl announces 5 bytes, but english-german-both.pkl has 29600159 bytes.
     Nothing was downloaded. Look at the address in a browser.

& server HTTP/1.1 200 OK||
$ nmt fetch english-german-lesson
nmt: https://example.org/english-german-lesson.pkl announces no size. Without a published size or checksum, half of
     english-german-lesson.pkl could pass for the whole. Download it in a browser to data/english-german-lesson.pkl.

& server HTTP/1.1 200 OK|Content-Length: 100000000||
$ nmt fetch english-german-lesson
nmt: https://example.org/english-german-lesson.pkl announces 100000000 bytes, but english-german-lesson.pkl has at
     most 67108864 bytes. Nothing was downloaded. Look at the address in a browser.

& server HTTP/1.1 200 OK|Content-Length: 10||pairs
$ nmt fetch english-german-lesson
nmt: https://example.org/english-german-lesson.pkl could not be downloaded: the connection closed before byte 10.
     Nothing was kept. Run the same command again.

$ rm data/english-german-both.pkl
& server HTTP/1.1 200 OK||pairs
$ nmt fetch english-german-both
nmt: https://example.org/english-german-both.pkl could not be downloaded: the connection closed before byte 29600159.
     Nothing was kept. Run the same command again.

$ rm data/english-german-both.pkl
& server HTTP/1.1 203 Non-Authoritative Information|Content-Length: 5||pairs
$ nmt fetch english-german-both
nmt: https://example.org/english-german-both.pkl could not be downloaded: the server answered HTTP 203. Nothing was
     kept. Run the same command again.

$ printf '%064d  english-german-lesson.pkl\n' 1 > data/english-german-lesson.pkl.sha256
& server HTTP/1.1 200 OK|Content-Length: 5||pairs
$ nmt fetch english-german-lesson
nmt: The download of english-german-lesson.pkl has the SHA-256
     fb095624103259f86a43b8cedab71373a62f18c2539424a53863e3e9fbb984c7 instead of the one of the first download in
     data/english-german-lesson.pkl.sha256, 0000000000000000000000000000000000000000000000000000000000000001. It was
     removed. Run the same command again. If this repeats, https://example.org/english-german-lesson.pkl holds another
     file now.

$ rm data/english-german-both.pkl
& nmt.data.sources.public.PublicFile.size_limit = 3
& server HTTP/1.1 200 OK||pairs
$ nmt fetch english-german-both
nmt: https://example.org/english-german-both.pkl sent more than the 3 bytes that english-german-both.pkl may have. The
     download was removed. Look at the address in a browser.

$ echo sum > data/english-german-lesson.pkl.sha256
$ nmt fetch english-german-lesson
nmt: data/english-german-lesson.pkl.sha256 is damaged: it does not begin with a SHA-256, 64 hexadecimal digits. It
     records the checksum of the first download. Remove it to trust the next download.

$ echo pairs > data/english-german-lesson.pkl
$ nmt fetch english-german-lesson
nmt: data/english-german-lesson.pkl exists already, and no published or recorded checksum can verify it. It was left
     as it is. Use it if you trust it, or move it away and run the same command again.

$ nmt fetch english-german-both
nmt: data/english-german-both.pkl exists already with other content: its SHA-256 is
     b00c6035a584b5c3221f755689262c13281e5b33f9d3c9f5cf81c2a121080155 instead of
     52944901e83d6f7ec010ad6cfc20eaeeebbe841dd805595b444230104195bbca. It was left as it is. Move it away, and run the
     same command again.

$ rm data/english-german-both.pkl; mkdir data/english-german-both.pkl
$ nmt fetch english-german-both
nmt: data/english-german-both.pkl exists and is not a file. Move it away, and run the same command again.

$ rm -r data; touch data
$ nmt fetch english-german-both
nmt: data/english-german-both.pkl cannot be written: File exists. Nothing was kept. Free some space or choose a folder
     that can be written, and run the same command again.

# --- nmt bench, nmt demo ---------------------------------------------------------------------------------------------

$ nmt bench --generated --dataset english-german-both
nmt: Sentences are generated or those of a dataset; received --generated and --dataset english-german-both. Leave one
     of them out.

$ nmt bench --vocabulary 500
nmt: --vocabulary is for generated data; received 500 without --generated. Add --generated, or leave it out.

$ nmt bench --dataset english
nmt: There is no prepared dataset 'english'. Prepared: english-german-both.

$ nmt bench --generated --set model.positions=learned --set model.max_positions=20
nmt: This model reads at most 20 tokens. Generated sentences need 102: 100 tokens, bos and eos. Set
     model.max_positions=102, or model.positions=sinusoidal.

$ nmt bench --set model.positions=learned --set model.max_positions=5
nmt: The longest source of the train split has 6 tokens with bos and eos; this model reads at most 5. Set
     model.max_positions=6, or model.positions=sinusoidal.

$ nmt bench --seconds=-1
nmt: --seconds must be greater than or equal to 0; received '-1'. See nmt bench --help

$ nmt demo tiny
nmt: demo takes no argument; received 'tiny'. See nmt demo --help

$ printf 'one\n' > data/demo.en-de.tsv
$ nmt demo
nmt: data/demo.en-de.tsv, line 1 has no tab: 'one'. Each line of a TSV corpus has a source sentence, a tab and its
     translation. Correct or remove the line, or drop and count unreadable lines with --set data.drop_unreadable=true
"""


# --- reading the table ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """The commands that lead to a message, and the message."""

    steps: list[str]
    command: str
    message: str
    leaves: str | None
    """Path that the refused command writes to, None for none."""


def read_table(table: str) -> Iterator[Row]:
    """Yield the paragraphs that are not comments."""
    for paragraph in re.split(r"\n{2,}", table.strip()):
        lines = [line for line in paragraph.splitlines() if not line.startswith("#")]
        typed = [line for line in lines if line.startswith(("$ ", "& "))]
        if typed:
            message = re.sub(r"\n +", " ", "\n".join(lines[len(typed) :]))
            steps = [line for line in typed[:-1] if not line.startswith("& leaves ")]
            left = [line.removeprefix("& leaves ") for line in typed if line.startswith("& leaves ")]
            yield Row(steps, typed[-1].removeprefix("$ "), message, left[0] if left else None)


ROWS = list(read_table(TABLE))


# --- taking the steps -------------------------------------------------------------------------------------------------


def be_server(patch: pytest.MonkeyPatch, answer: str) -> None:
    """Answer the next request for a corpus. "|" ends a line; without a status line the connection is closed."""
    listening = socket.create_server(("127.0.0.1", 0))
    address = f"http://127.0.0.1:{listening.getsockname()[1]}"

    def serve() -> None:
        with listening, listening.accept()[0] as connection:
            connection.recv(2**16)
            if answer.startswith("HTTP"):
                head, _, body = answer.partition("||")
                connection.sendall(f"{head.replace('|', chr(13) + chr(10))}\r\n\r\n{body}".encode())

    threading.Thread(target=serve, daemon=True).start()
    patch.setattr(downloads, "CORPORA", {
        name: replace(file, address=f"{address}/{file.name}") for name, file in downloads.CORPORA.items()
    })  # fmt: skip


def hold_lock(patch: pytest.MonkeyPatch, path_and_holder: str) -> None:
    """Hold a lock as another process does, which has written its id into the file."""
    fcntl = pytest.importorskip("fcntl")
    path, _, holder = path_and_holder.partition(" ")
    file = Path(path).open("w")  # noqa: SIM115 - closed, and the lock with it, when the patch is undone
    file.write(holder)
    file.flush()
    fcntl.flock(file, fcntl.LOCK_EX)
    patch.setattr(hold_lock, "file", file, raising=False)


def failing(message: str) -> Callable[..., None]:
    """Return a callable that fails, as the programs that matplotlib calls for some formats do."""

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError(message)

    return fail


def exhausted() -> Exception:
    """Return TensorFlow's error for memory that has run out."""
    return tf.errors.ResourceExhaustedError(None, None, "no memory for a tensor")


def take(step: str, patch: pytest.MonkeyPatch) -> None:
    """Take a step of a row."""
    if step.startswith("& server "):
        be_server(patch, step.removeprefix("& server "))
    elif step.startswith("& variable "):
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


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


def run(command: str) -> Outcome:
    """Run a command line in this process, in which TensorFlow is loaded."""
    before, _, after = command.rpartition("| ")
    piped = subprocess.run(["bash", "-c", before], capture_output=True, check=True).stdout if before else b""
    stdin = io.TextIOWrapper(io.BytesIO(piped), encoding="utf-8")
    out, err = io.StringIO(), io.StringIO()
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.raises(SystemExit) as ended,
    ):
        patch.setattr(sys, "argv", shlex.split(after))
        patch.setattr(sys, "stdin", stdin)
        cli.main()
    return Outcome(int(ended.value.code or 0), out.getvalue(), as_printed(err.getvalue()))


def as_printed(text: str) -> str:
    """Return a message with the paths and addresses of this machine replaced by those of the table."""
    return re.sub(r"http://127\.0\.0\.1:\d+", "https://example.org", text.replace(str(PACKAGE.parent), "/opt")).rstrip()


def contents(folder: Path) -> dict[str, bytes | None]:
    """Return the entries of a folder by path: the content of each file, None for a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


# --- where messages are made ------------------------------------------------------------------------------------------

PACKAGE = ROOT / "nmt"
Site = tuple[str, int]  # file and line


def kinds() -> set[str]:
    """Names of what becomes a message: errors for the user, and parts of one."""
    found, waiting = {"_RefusedError", "UnreadablePair"}, [errors.NmtError]
    while waiting:
        kind = waiting.pop()
        found.add(kind.__name__)
        waiting += kind.__subclasses__()
    return found


def sites() -> dict[Site, str]:
    """Return every place in nmt/ that makes a message, with its source text."""
    found: dict[Site, str] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text()
        tree = ast.parse(text)
        made = [node for node in ast.walk(tree) if is_call(node, kinds())]
        for section in ast.walk(tree):
            if isinstance(section, ast.ClassDef) and {ast.unparse(base) for base in section.bases} & SECTIONS:
                made += [node for node in ast.walk(section) if is_call(node, {"ValueError"})]
        for node in made:
            found[str(path.relative_to(PACKAGE)), node.lineno] = ast.get_source_segment(text, node) or ""
    return found


# What pydantic checks, whose ValueErrors are parts of a message.
SECTIONS = {"Record", "RenamedRecord", "DocumentedRecord", "Section", "ModelConfig"}


def is_call(node: ast.AST, names: set[str]) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names


def note(reached: set[Site], frame: FrameType | None, line: int | None = None) -> None:
    """Add the innermost place in nmt/ on the stack to ``reached``."""
    while frame and not frame.f_code.co_filename.startswith(str(PACKAGE)):
        frame = frame.f_back
    if frame:
        reached.add((str(Path(frame.f_code.co_filename).relative_to(PACKAGE)), line or frame.f_lineno))


def watch(patch: pytest.MonkeyPatch, reached: set[Site]) -> None:
    """Record in ``reached`` every place that makes a message, when it does."""

    def noting(kind: type[Exception]) -> Callable[..., None]:
        original = kind.__init__

        def make(self: Exception, *arguments: Any) -> None:
            note(reached, sys._getframe(1))
            broken = sys.exc_info()[1]
            if isinstance(broken, ValidationError):
                for problem in broken.errors():
                    trace = getattr(problem.get("ctx", {}).get("error"), "__traceback__", None)
                    while trace:
                        note(reached, trace.tb_frame, trace.tb_lineno)
                        trace = trace.tb_next
            original(self, *arguments)

        return make

    for kind in (errors.NmtError, safe_pickle._RefusedError):
        patch.setattr(kind, "__init__", noting(kind))

    def fault(*arguments: str) -> readers.UnreadablePair:
        note(reached, sys._getframe(1))
        return corpus.UnreadablePair(*arguments)

    patch.setattr(readers, "UnreadablePair", fault)


# --- the tests --------------------------------------------------------------------------------------------------------

# Messages that no row can reach: file and beginning of the message, with the reason.
OUT_OF_REACH = {
    (
        "config/architecture.py",
        "says no width",
    ): "every architecture says its width; test_contract.py registers another one",
    ("config/loading.py", "Check its permissions and its disk"): "a file without permission to read it, which root has",
    (
        "data/dataset.py",
        "was prepared without its training text",
    ): "training samples from datasets alone whose manifest says that they can",
    ("data/encoding.py", "The system ended a process"): "the system has to run out of memory",
    (
        "data/encoding.py",
        "The split has",
    ): "its checksum is looked at before, so only where both are forged",
    ("data/sources/pickled_array.py", "does not fit into memory"): "the memory has to run out",
    (
        "data/sources/pickled_array.py",
        "is not a regular file",
    ): "only files are looked for, so only one that is exchanged meanwhile",
    (
        "data/sources/pickled_array.py",
        "There is no file",
    ): "the file was found before, so only one that is removed meanwhile",
    (
        "data/sources/pickled_array.py",
        "Check its permissions and its disk",
    ): "its checksum was taken before, so only a failing disk",
    (
        "export/saved_model.py",
        "could not translate with",
    ): "what was written just before is damaged, see test_saved_model.py",
    ("cli/plot/attention.py", "has no self-attention"): "test_plot.py, which has a recurrent run",
    ("decoding/text_ids.py", "writes at most"): "test_text_ids.py, in less time",
    # Exports: tests/export/
    ("decoding/ctranslate2_translator.py", "CTranslate2 cannot load"): "its checksum is compared before",
    ("decoding/ctranslate2_translator.py", "Too long"): "test_ctranslate2.py, in less time",
    ("decoding/exported.py", "is missing. The export was"): "test_export.py, in less time",
    ("decoding/exported.py", "is damaged: {error"): "test_export.py, in less time",
    ("decoding/exported.py", "is outside the folder"): "test_export.py, in less time",
    ("decoding/exported.py", "which nmt does not translate with"): "test_export.py, in less time",
    ("export/vocabulary_map.py", "has white space"): "no tokenizer of today makes such a piece",
    ("export/argos.py", "has a vocabulary for each side"): "test_export.py, with another dataset",
    ("export/ctranslate2.py", "has the architecture"): "test_ctranslate2.py, with a recurrent model",
    ("export/huggingface/exporter.py", "attention heads of size"): "test_huggingface.py, without its extra",
    ("export/huggingface/exporter.py", "has model.positions: rotary"): "test_huggingface.py, without its extra",
    ("export/normalizing_sentencepiece.py", "drops whole words"): "test_normalizing_sentencepiece.py",
    ("export/verification.py", "The export is not equal"): "test_export.py, with an exporter that is wrong",
    ("export/verification.py", "loses"): "test_export.py, with an exporter that is wrong",
    ("extras.py", "The Python package"): "the extras are installed where the tests run; test_extras.py hides one",
    ("plotting/lesson/sinusoids.py", "has room for"): "test_lesson_figures.py, without a long command line",
    ("tracking/tensorboard.py", "does not grow any more"): "a warning alone: test_tracking.py removes the folder",
    ("reporting/scores.py", "; the report is of"): "test_report.py, with a result that is quickly made",
    ("plotting/figures.py", "There is no figure"): "the command line knows the names; test_figures.py",
    ("tokenizers/subword.py", "has pieces that are not UTF-8"): "only a model that no program writes",
    ("tuning/tuner.py", "is too short: it has to hold"): "test_tuner.py: how much is too little depends on the machine",
    ("tuning/tuner.py", "No trial of the last rung"): "test_tuner.py, with trials that all fail",
    # Several processes: tests/cluster/ and tests/decoding/test_shared.py
    ("cli/commands/train.py", "endings.after_loss"): "a worker that is gone",
    ("cluster/launch.py", "ended with exit code"): "a worker that ends before the others have met",
    ("cluster/rendezvous.py", "came twice"): "two workers of one number",
    ("cluster/rendezvous.py", "calls itself number"): "a worker of another start",
    ("cluster/rendezvous.py", "differs from worker"): "a worker with another configuration",
    ("cluster/rendezvous.py", "refused"): "what the chief has said",
    ("cluster/rendezvous.py", "went away"): "a chief that ends before the others have met",
    ("cluster/workers.py", "differ from those of"): "a worker that computes other bits",
    ("cluster/workers.py", "self._lost"): "a worker that is gone",
    ("decoding/shared.py", "ended with exit code"): "a process that is killed",
    ("decoding/shared.py", 'answer["error"]'): "what one process refuses this one refuses before",
}


def differences(row: Row, project: Path, patch: pytest.MonkeyPatch) -> str:
    """Return the differences between a row and the outcome as text, "" for none."""
    patch.chdir(project)
    for step in row.steps:
        take(step, patch)
    before = contents(project)
    outcome = run(row.command)
    after = contents(project)
    changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    found = []
    if outcome.code != 2:
        found.append(f"exit code {outcome.code}; printed {outcome.out!r}")
    if outcome.err != row.message:
        found.append(f"expected: {row.message}\nreceived: {outcome.err}")
    if outcome.out and not row.command.startswith(("nmt train", "nmt tune")):  # it prints before it can fail
        found.append(f"printed {outcome.out!r}")
    if row.leaves is None and changed:
        found.append(f"changed {sorted(changed)}")
    if row.leaves is not None and not (changed and all(path.startswith(row.leaves) for path in changed)):
        found.append(f"changed {sorted(changed)} instead of {row.leaves}")
    return "".join(f"\n{difference}" for difference in found)


def test_the_messages_are_those_of_the_table_and_the_table_has_every_message(
    trained_project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One test, so that one process makes all the messages."""
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setenv("MPLBACKEND", "agg")
    reached: set[Site] = set()
    watch(monkeypatch, reached)
    wrong = []
    for number, row in enumerate(ROWS):
        project = Path(shutil.copytree(trained_project, tmp_path / str(number)))
        with pytest.MonkeyPatch.context() as patch:
            if found := differences(row, project, patch):
                wrong.append(f"$ {row.command}{found}")
        shutil.rmtree(project)
    assert not wrong, "\n\n".join(wrong)
    missed = {site: text for site, text in sites().items() if site not in reached}
    known = {
        (file, beginning): [site for site, text in missed.items() if site[0] == file and beginning in text]
        for file, beginning in OUT_OF_REACH
    }
    assert not [key for key, found in known.items() if len(found) != 1], "what is out of reach is one place each"
    assert missed.keys() == {site for found in known.values() for site in found}, "a message without a row"


@pytest.mark.parametrize("command", ["nmt traim", "nmt plot loss", "nmt train --set epochs=1", "nmt prepare ghost.tsv"])
def test_a_process_of_its_own_says_the_same(command: str, trained_project: Path) -> None:
    [row] = [row for row in ROWS if row.command == command]
    assert as_printed(in_a_process(*shlex.split(command)[1:], cwd=trained_project, code=2).stderr) == row.message
