#!/bin/sh
# Package:  @hyperjump/json-schema 1.18.0 (npm)
# Expected: JSON Schema 2020-12, Validation 6.2.1: a number is valid against `multipleOf` only if the division results in
#           an integer. 3.000000001 is no multiple of 1, 1e-8 is none either, and -8.2 is a multiple of 0.01.
# Seen:     The opposite for all three. A small remainder counts as none, and so does one that is nearly the divisor, but
#           for a negative number neither is recognized.
# Fails when this has changed.
set -eu
recorded='3.000000001 by 1: true
1e-8 by 1: true
8.2 by 0.01: true
-8.2 by 0.01: false'
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{}' > package.json
npm install --silent --no-audit --no-fund @hyperjump/json-schema@1.18.0
cat > try.mjs <<'END'
import { registerSchema, validate } from '@hyperjump/json-schema/draft-2020-12';
const $schema = 'https://json-schema.org/draft/2020-12/schema';
for (const [number, multipleOf] of [[3.000000001, 1], [1e-8, 1], [8.2, 0.01], [-8.2, 0.01]]) {
  const id = `https://example.org/${number}`;
  registerSchema({ $schema, multipleOf }, id);
  console.log(`${number} by ${multipleOf}: ${(await validate(id, number)).valid}`);
}
END
seen=$(node try.mjs)
printf "%s\n" "$seen"
[ "$seen" = "$recorded" ] || { echo 'no longer as recorded' >&2; exit 1; }
