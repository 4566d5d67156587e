#!/bin/sh
# Package:  jsonschema 4.26.0 (PyPI)
# Expected: JSON Schema 2020-12, Core 6.4: a pattern is a regular expression of ECMA-262, in which "$" is the end of the
#           text, and \d one of the ten digits.
# Seen:     It is one of Python's re: "$" matches before a line feed at the end, and \d the digits of all scripts.
# Fails when this has changed.
set -eu
recorded='$ before a line feed: True
\d is an Arabic digit: True'
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv python
python/bin/pip install --quiet jsonschema==4.26.0
cat > try.py <<'END'
from jsonschema import Draft202012Validator

for what, pattern, text in [("$ before a line feed", "^a$", "a\n"), (r"\d is an Arabic digit", r"^\d$", "\u0663")]:
    print(f"{what}: {Draft202012Validator({'pattern': pattern}).is_valid(text)}")
END
seen=$(python/bin/python try.py)
printf "%s\n" "$seen"
[ "$seen" = "$recorded" ] || { echo 'no longer as recorded' >&2; exit 1; }
