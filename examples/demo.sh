#!/usr/bin/env bash
# Asks the three questions of examples/questions.txt of examples/library, without network or model, into demo-out/.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=${BIN:-.venv/bin} docs=${DOCS:-examples/library} out=${OUT:-demo-out}
mkdir -p "$out"
n=0 first=""
while IFS= read -r question || [ -n "$question" ]; do
    case $question in '' | '#'*) continue ;; esac
    n=$((n + 1))
    echo
    echo "[$n] $question"
    status=0
    "$bin/marg" research "$question" --docs "$docs" --offline \
        -o "$out/$n.md" -o "$out/$n.html" -o "$out/$n.json" </dev/null || status=$?
    case $status in
        0) ;;
        3) echo "    delivered with a quality warning: the report says where" ;;
        *) echo "    no report: marg ended with exit code $status" >&2; exit "$status" ;;
    esac
    [ -n "$first" ] || first=$out/$n.md
done <examples/questions.txt
echo
echo "The reports (open the .html files in a browser; each citation opens its passage):"
ls -1 "$out"/*.md "$out"/*.html "$out"/*.json | sed 's/^/    /'
echo
echo "The start of $first:"
echo
sed -n '1,40p' "$first" | sed 's/^/    /'
