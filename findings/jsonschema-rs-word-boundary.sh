#!/bin/sh
# Package:  jsonschema-rs 0.61.0 (PyPI; the Rust crate jsonschema)
# Expected: JSON Schema 2020-12, Core 6.4: patterns are regular expressions of ECMA-262. There, \b is a boundary of the
#           63 characters [A-Za-z0-9_], also with the flag u, so one is between "é" and "a", as \W matches "é".
# Seen:     \W matches "é" and \w does not, but \b takes it for a letter of a word: "éa" does not match \ba.
# Fails when this has changed.
set -eu
recorded='^\W$ matches é: True
^\w$ matches é: False
\ba matches éa: False
\ba matches -a: True'
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv python
python/bin/pip install --quiet jsonschema-rs==0.61.0
cat > try.py <<'END'
import jsonschema_rs

for pattern, text in [(r"^\W$", "é"), (r"^\w$", "é"), (r"\ba", "éa"), (r"\ba", "-a")]:
    print(f"{pattern} matches {text}: {jsonschema_rs.is_valid({'pattern': pattern}, text)}")
END
seen=$(PYTHONIOENCODING=utf-8 python/bin/python try.py)
printf "%s\n" "$seen"
[ "$seen" = "$recorded" ] || { echo 'no longer as recorded' >&2; exit 1; }
