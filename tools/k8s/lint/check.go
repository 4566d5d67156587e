package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/uuid"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/capabilities"
)

// document is what the API server would get, decoded and with its defaults.
type document struct {
	where  string
	kind   schema.GroupVersionKind
	object runtime.Object
}

// faults are printed as they are found; a warning of the API server is a fault, too.
type faults struct{ count int }

func (f *faults) add(where string, fault any) {
	f.count++
	fmt.Printf("%s: %v\n", where, fault)
}

// AddWarning makes faults a recorder of warnings; the server's agent is always empty.
func (f *faults) AddWarning(_, text string) { f.add("warning", text) }

// check does to each document what the API server does to one that is created.
func check(input io.Reader) error {
	// Otherwise a privileged pod is refused here, and not by the rules of the namespace.
	capabilities.Setup(true, 0)
	found := &faults{}
	documents, err := decodeAll(input, found)
	if err != nil {
		return err
	}
	for _, each := range documents {
		if err := create(each, found); err != nil {
			found.add(each.where, err)
		}
	}
	checkPodSecurity(documents, found)
	if found.count > 0 {
		return fmt.Errorf("%d documents, %d faults", len(documents), found.count)
	}
	fmt.Printf("%d documents, no fault\n", len(documents))
	return nil
}

// decodeAll refuses unknown fields, fields that are given twice, and versions that are not in the list.
func decodeAll(input io.Reader, found *faults) ([]document, error) {
	strict := json.NewSerializerWithOptions(json.DefaultMetaFactory, legacyscheme.Scheme, legacyscheme.Scheme,
		json.SerializerOptions{Yaml: true, Strict: true})
	reader := utilyaml.NewYAMLReader(bufio.NewReader(input))
	var documents []document
	for i := 1; ; i++ {
		text, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return documents, nil
		}
		if err != nil {
			return nil, err
		}
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		object, kind, err := strict.Decode(text, nil, nil)
		if err != nil {
			found.add(fmt.Sprintf("document %d", i), err)
			if object == nil {
				continue
			}
		}
		named, err := meta.Accessor(object)
		if err != nil {
			return nil, err
		}
		where := fmt.Sprintf("%s %s", kind.Kind, named.GetName())
		if _, known := strategies[*kind]; !known {
			found.add(where, fmt.Sprintf("%s is not in the list of versions that are checked", kind.GroupVersion()))
			continue
		}
		legacyscheme.Scheme.Default(object)
		documents = append(documents, document{where, *kind, object})
	}
}

// create runs the API server's own strategy: it prepares and validates the object, and warns.
func create(given document, found *faults) error {
	internalVersion := schema.GroupVersion{Group: given.kind.Group, Version: runtime.APIVersionInternal}
	object, err := legacyscheme.Scheme.ConvertToVersion(given.object.DeepCopyObject(), internalVersion)
	if err != nil {
		return err
	}
	fillInAllocated(object)
	named, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	strategy := strategies[given.kind]
	if strategy.NamespaceScoped() && named.GetNamespace() == "" {
		return errors.New("it has no namespace")
	}
	named.SetCreationTimestamp(metav1.NewTime(time.Now()))
	named.SetUID(uuid.NewUUID())
	ctx := request.WithNamespace(context.Background(), named.GetNamespace())
	ctx = request.WithRequestInfo(ctx, &request.RequestInfo{IsResourceRequest: true, Verb: "create",
		APIGroup: given.kind.Group, APIVersion: given.kind.Version, Namespace: named.GetNamespace()})
	if err := rest.BeforeCreate(strategy, warning.WithWarningRecorder(ctx, found), object); err != nil {
		return err
	}
	return nil
}
