#!/bin/sh
# Package:  zod-to-json-schema 3.25.2 with zod 3.25.76 (npm)
# Expected: A JSON Schema is JSON: the limit of a BigInt is a number there, or a text.
# Seen:     The limit is a BigInt, so the schema cannot be written as JSON.
# Fails when this has changed.
set -eu
recorded='minimum is a bigint
TypeError: Do not know how to serialize a BigInt'
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{}' > package.json
npm install --silent --no-audit --no-fund zod-to-json-schema@3.25.2 zod@3.25.76
cat > try.mjs <<'END'
import { z } from 'zod';
import { zodToJsonSchema } from 'zod-to-json-schema';
const schema = zodToJsonSchema(z.bigint().min(1n));
console.log(`minimum is a ${typeof schema.minimum}`);
try {
  console.log(JSON.stringify(schema));
} catch (error) {
  console.log(String(error));
}
END
seen=$(node try.mjs)
printf "%s\n" "$seen"
[ "$seen" = "$recorded" ] || { echo 'no longer as recorded' >&2; exit 1; }
