package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/util/cert"
)

const (
	metricsRoot = "/apis/metrics.k8s.io/v1beta1"
	// cpuAnnotation of a pod says how many thousandths of a core it takes.
	cpuAnnotation = "fake/cpu-millis"
)

type object = map[string]any

// serveMetrics stands for a metrics server, as an API that the API server aggregates: so the real autoscaler scales on
// what the annotations of pods say.
func serveMetrics(ctx context.Context, client kubernetes.Interface, pods listers.PodLister) error {
	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return err
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}})
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc(metricsRoot, func(w http.ResponseWriter, _ *http.Request) {
		answer(w, object{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "metrics.k8s.io/v1beta1",
			"resources": []object{{"name": "pods", "singularName": "", "namespaced": true, "kind": "PodMetrics",
				"verbs": []string{"get", "list"}}}})
	})
	mux.HandleFunc(metricsRoot+"/namespaces/", func(w http.ResponseWriter, r *http.Request) {
		namespace, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, metricsRoot+"/namespaces/"), "/")
		selector, err := labels.Parse(r.URL.Query().Get("labelSelector"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		found, err := pods.Pods(namespace).List(selector)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		answer(w, object{"kind": "PodMetricsList", "apiVersion": "metrics.k8s.io/v1beta1",
			"metadata": object{}, "items": usage(found)})
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() {
		if err := server.Serve(listener); ctx.Err() == nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	go func() {
		<-ctx.Done()
		_ = server.Close()
	}()
	return aggregate(ctx, client, listener.Addr().(*net.TCPAddr).Port)
}

func usage(pods []*corev1.Pod) []object {
	items := []object{}
	for _, pod := range pods {
		millis, _ := strconv.Atoi(pod.Annotations[cpuAnnotation])
		var containers []object
		for _, container := range pod.Spec.Containers {
			containers = append(containers, object{"name": container.Name,
				"usage": object{"cpu": fmt.Sprintf("%dm", millis/len(pod.Spec.Containers)), "memory": "64Mi"}})
		}
		items = append(items, object{"metadata": object{"name": pod.Name, "namespace": pod.Namespace, "labels": pod.Labels},
			"timestamp": time.Now().UTC().Format(time.RFC3339), "window": "10s", "containers": containers})
	}
	return items
}

// aggregate makes the API server ask localhost for metrics: a Service of the type ExternalName may name it.
func aggregate(ctx context.Context, client kubernetes.Interface, port int) error {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "metrics"},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"}}
	if _, err := client.CoreV1().Services("kube-system").Create(ctx, service, metav1.CreateOptions{}); err != nil {
		return err
	}
	body, err := json.Marshal(object{"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
		"metadata": object{"name": "v1beta1.metrics.k8s.io"},
		"spec": object{"group": "metrics.k8s.io", "version": "v1beta1", "groupPriorityMinimum": 100, "versionPriority": 100,
			"insecureSkipTLSVerify": true, "service": object{"namespace": "kube-system", "name": "metrics", "port": port}}})
	if err != nil {
		return err
	}
	return client.CoreV1().RESTClient().Post().AbsPath("/apis/apiregistration.k8s.io/v1/apiservices").Body(body).
		SetHeader("Content-Type", "application/json").Do(ctx).Error()
}

func answer(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	// a client that has gone gets no answer
	_ = json.NewEncoder(w).Encode(value)
}
