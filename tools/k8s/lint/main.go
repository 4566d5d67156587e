// Command lint is Kubernetes without a cluster.
//
//	lint render FOLDER   prints what kustomize makes of the folder
//	lint check           reads documents from standard input and prints what the API server would not accept
package main

import (
	"fmt"
	"os"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

func main() {
	var err error
	switch {
	case len(os.Args) == 3 && os.Args[1] == "render":
		err = render(os.Args[2])
	case len(os.Args) == 2 && os.Args[1] == "check":
		err = check(os.Stdin)
	default:
		err = fmt.Errorf("usage: lint render FOLDER | lint check")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func render(folder string) error {
	rendered, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		return err
	}
	text, err := rendered.AsYaml()
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(text)
	return err
}
