#!/bin/sh
# Package:  dataclasses-jsonschema 2.16.0 (PyPI)
# Expected: The schema names draft-04 by the URI of its meta-schema, http://json-schema.org/draft-04/schema#.
# Seen:     The host lacks a letter, so no validator knows the dialect.
# Fails when this has changed.
set -eu
recorded='http://json-shema.org/draft-04/schema#'
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv python
python/bin/pip install --quiet dataclasses-jsonschema==2.16.0
cat > try.py <<'END'
from dataclasses import dataclass

from dataclasses_jsonschema import JsonSchemaMixin, SchemaType


@dataclass
class Order(JsonSchemaMixin):
    id: int


print(Order.json_schema(schema_type=SchemaType.DRAFT_04)["$schema"])
END
seen=$(python/bin/python try.py)
printf "%s\n" "$seen"
[ "$seen" = "$recorded" ] || { echo 'no longer as recorded' >&2; exit 1; }
