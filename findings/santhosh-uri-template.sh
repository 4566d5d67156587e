#!/bin/sh
# Package:  github.com/santhosh-tekuri/jsonschema/v6 6.0.3 (Go)
# Expected: RFC 6570, section 2.3 and 2.4: a variable may have a modifier, ":" with a length or "*"; no expression is
#           empty. {?a,b*} and {a:3} are templates, {} and {a,} are not.
# Seen:     The opposite.
# Fails when this has changed.
set -eu
recorded='{a}: true
{?a,b*}: false
{a:3}: false
{}: true
{a,}: true'
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
cat > go.mod <<'END'
module try

go 1.24

require github.com/santhosh-tekuri/jsonschema/v6 v6.0.3
END
cat > main.go <<'END'
package main

import (
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

func main() {
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	if err := compiler.AddResource("schema.json", map[string]any{"format": "uri-template"}); err != nil {
		panic(err)
	}
	schema := compiler.MustCompile("schema.json")
	for _, text := range []string{"{a}", "{?a,b*}", "{a:3}", "{}", "{a,}"} {
		fmt.Printf("%s: %t\n", text, schema.Validate(text) == nil)
	}
}
END
go mod tidy > /dev/null 2>&1
seen=$(go run .)
printf "%s\n" "$seen"
[ "$seen" = "$recorded" ] || { echo 'no longer as recorded' >&2; exit 1; }
