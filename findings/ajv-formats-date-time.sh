#!/bin/sh
# Package:  ajv-formats 3.0.1 with ajv 8.20.0 (npm)
# Expected: RFC 3339, section 5.6: "T" or "t" stands between date and time, an offset has a colon and minutes, an hour is
#           at most 23 and a minute at most 59. None of these texts is a date-time.
# Seen:     All are. White space of any kind is taken for "T", the offset is that of ISO 8601, and where the seconds are
#           60, only the time in UTC is looked at, so an offset makes up for an hour 24 or a minute 60.
# Fails when this has changed.
set -eu
recorded='"2026-01-01\n00:00:00Z": true
"2026-01-01\u00a000:00:00Z": true
"2026-01-01T00:00:00+0100": true
"2026-01-01T00:00:00+01": true
"2026-01-01T24:59:60+01:00": true
"2026-01-01T23:60:60+00:01": true'
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{}' > package.json
npm install --silent --no-audit --no-fund ajv@8.20.0 ajv-formats@3.0.1
cat > try.mjs <<'END'
import { Ajv } from 'ajv';
import formats from 'ajv-formats';
const ajv = new Ajv();
formats.default(ajv);
const isDateTime = ajv.compile({ type: 'string', format: 'date-time' });
const texts = ['2026-01-01\n00:00:00Z', '2026-01-01\u00a000:00:00Z', '2026-01-01T00:00:00+0100', '2026-01-01T00:00:00+01'];
for (const text of [...texts, '2026-01-01T24:59:60+01:00', '2026-01-01T23:60:60+00:01'])
  console.log(`${JSON.stringify(text).replace('\u00a0', '\\u00a0')}: ${isDateTime(text)}`);
END
seen=$(node try.mjs)
printf "%s\n" "$seen"
[ "$seen" = "$recorded" ] || { echo 'no longer as recorded' >&2; exit 1; }
