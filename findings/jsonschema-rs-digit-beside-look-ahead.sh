#!/bin/sh
# Package:  jsonschema-rs 0.61.0 (PyPI)
# Expected: JSON Schema 2020-12, Core 6.4: a pattern is a regular expression of ECMA-262, in which \d is one of the ten
#           digits.
# Seen:     Beside a look-ahead, \d takes the digits of all scripts.
# Fails when this has changed.
set -eu
recorded='^\d$: False
^(?!a)\d$: True'
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv python
python/bin/pip install --quiet jsonschema-rs==0.61.0
cat > try.py <<'END'
from jsonschema_rs import Draft202012Validator

ARABIC_THREE = "\u0663"
for pattern in [r"^\d$", r"^(?!a)\d$"]:
    print(f"{pattern}: {Draft202012Validator({'pattern': pattern}).is_valid(ARABIC_THREE)}")
END
seen=$(python/bin/python try.py)
printf "%s\n" "$seen"
[ "$seen" = "$recorded" ] || { echo 'no longer as recorded' >&2; exit 1; }
