#!/bin/sh
# Package:  mashumaro 3.23 (PyPI)
# Expected: Each reference leads to a definition.
# Seen:     With the dialect of OpenAPI, references are to #/components/schemas, and the definitions are below $defs.
# Fails when this has changed.
set -eu
recorded='{"$ref": "#/components/schemas/Order", "$defs": {"Order": {"type": "object", "title": "Order", "properties": {"id": {"type": "integer"}}, "required": ["id"]}}}'
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv python
python/bin/pip install --quiet mashumaro==3.23
cat > try.py <<'END'
import json
from dataclasses import dataclass

from mashumaro.jsonschema import OPEN_API_3_1, build_json_schema


@dataclass
class Order:
    id: int


schema = build_json_schema(Order, dialect=OPEN_API_3_1).to_dict()
schema["$defs"]["Order"].pop("additionalProperties", None)
print(json.dumps(schema))
END
seen=$(python/bin/python try.py)
printf "%s\n" "$seen"
[ "$seen" = "$recorded" ] || { echo 'no longer as recorded' >&2; exit 1; }
