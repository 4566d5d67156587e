#!/bin/sh
# Package:  jsonschema 4.26.0 with rfc3339-validator 0.1.4 (PyPI)
# Expected: RFC 3339, section 5.6: nothing follows the offset, and a second is 60 where a leap second was, as in the
#           example 1990-12-31T23:59:60Z of section 5.8.
# Seen:     A line feed may follow the offset, as "$" of Python's re matches before one, and a leap second is refused.
# Fails when this has changed.
set -eu
recorded="'2026-01-01T00:00:00Z': True
'2026-01-01T00:00:00Z\\n': True
'1990-12-31T23:59:60Z': False"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv python
python/bin/pip install --quiet jsonschema==4.26.0 rfc3339-validator==0.1.4
cat > try.py <<'END'
from jsonschema import Draft202012Validator

validator = Draft202012Validator({"format": "date-time"}, format_checker=Draft202012Validator.FORMAT_CHECKER)
for text in ["2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z\n", "1990-12-31T23:59:60Z"]:
    print(f"{text!r}: {validator.is_valid(text)}")
END
seen=$(python/bin/python try.py)
printf "%s\n" "$seen"
[ "$seen" = "$recorded" ] || { echo 'no longer as recorded' >&2; exit 1; }
