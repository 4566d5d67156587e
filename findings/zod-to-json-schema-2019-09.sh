#!/bin/sh
# Package:  zod-to-json-schema 3.25.2 with zod 3.25.76 (npm)
# Expected: JSON Schema 2019-09, Validation 6.2.5: the value of `exclusiveMinimum` is a number.
# Seen:     A schema that calls itself one of 2019-09 has the boolean of draft-04, which its meta-schema refuses. The target
#           jsonSchema7 has the number.
# Fails when this has changed.
set -eu
recorded='jsonSchema7: {"type":"number","exclusiveMinimum":1,"$schema":"http://json-schema.org/draft-07/schema#"}
jsonSchema2019-09: {"type":"number","exclusiveMinimum":true,"minimum":1,"$schema":"https://json-schema.org/draft/2019-09/schema#"}'
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{}' > package.json
npm install --silent --no-audit --no-fund zod-to-json-schema@3.25.2 zod@3.25.76
cat > try.mjs <<'END'
import { z } from 'zod';
import { zodToJsonSchema } from 'zod-to-json-schema';
for (const target of ['jsonSchema7', 'jsonSchema2019-09'])
  console.log(`${target}: ${JSON.stringify(zodToJsonSchema(z.number().gt(1), { target }))}`);
END
seen=$(node try.mjs)
printf "%s\n" "$seen"
[ "$seen" = "$recorded" ] || { echo 'no longer as recorded' >&2; exit 1; }
