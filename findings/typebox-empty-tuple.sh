#!/bin/sh
# Package:  typebox 1.4.3 (npm), with ajv 8.20.0 and its meta-schemas
# Expected: A list of `items` has at least one schema in drafts 4 to 7 and 2019-09, and is not allowed in 2020-12; an empty
#           tuple is {"type": "array", "maxItems": 0}.
# Seen:     Type.Tuple([]) has an empty list of items, which the meta-schema of every draft refuses.
# Fails when this has changed.
set -eu
recorded='{"type":"array","additionalItems":false,"items":[],"minItems":0}
draft-07: false
2019-09: false
2020-12: false'
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{}' > package.json
npm install --silent --no-audit --no-fund typebox@1.4.3 ajv@8.20.0
cat > try.mjs <<'END'
import Type from 'typebox';
import { Ajv } from 'ajv';
import { Ajv2019 } from 'ajv/dist/2019.js';
import { Ajv2020 } from 'ajv/dist/2020.js';
const schema = JSON.parse(JSON.stringify(Type.Tuple([])));
console.log(JSON.stringify(schema));
for (const [draft, Validator] of Object.entries({ 'draft-07': Ajv, '2019-09': Ajv2019, '2020-12': Ajv2020 }))
  console.log(`${draft}: ${new Validator({ strict: false, logger: false }).validateSchema(schema)}`);
END
seen=$(node try.mjs)
printf "%s\n" "$seen"
[ "$seen" = "$recorded" ] || { echo 'no longer as recorded' >&2; exit 1; }
