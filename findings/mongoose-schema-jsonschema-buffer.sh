#!/bin/sh
# Package:  mongoose-schema-jsonschema 4.0.1 with mongoose 9.12.1 (npm)
# Expected: The value of `type` is one of the seven that JSON Schema has.
# Seen:     A Buffer has the type "buffer", which every meta-schema refuses.
# Fails when this has changed.
set -eu
recorded='{"type":"buffer"}'
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{}' > package.json
npm install --silent --no-audit --no-fund mongoose-schema-jsonschema@4.0.1 mongoose@9.12.1
cat > try.mjs <<'END'
import mongoose from 'mongoose';
import extend from 'mongoose-schema-jsonschema';
const { Schema } = extend(mongoose);
console.log(JSON.stringify(new Schema({ file: Buffer }).jsonSchema('Thing').properties.file));
END
seen=$(node try.mjs)
printf "%s\n" "$seen"
[ "$seen" = "$recorded" ] || { echo 'no longer as recorded' >&2; exit 1; }
