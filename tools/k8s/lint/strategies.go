package main

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	_ "k8s.io/kubernetes/pkg/apis/autoscaling/install"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/networking/install"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	_ "k8s.io/kubernetes/pkg/apis/rbac/install"
	"k8s.io/kubernetes/pkg/registry/apps/deployment"
	"k8s.io/kubernetes/pkg/registry/apps/statefulset"
	"k8s.io/kubernetes/pkg/registry/autoscaling/horizontalpodautoscaler"
	"k8s.io/kubernetes/pkg/registry/batch/cronjob"
	"k8s.io/kubernetes/pkg/registry/batch/job"
	"k8s.io/kubernetes/pkg/registry/core/configmap"
	"k8s.io/kubernetes/pkg/registry/core/namespace"
	"k8s.io/kubernetes/pkg/registry/core/secret"
	"k8s.io/kubernetes/pkg/registry/core/service"
	"k8s.io/kubernetes/pkg/registry/core/serviceaccount"
	"k8s.io/kubernetes/pkg/registry/networking/ingress"
	"k8s.io/kubernetes/pkg/registry/networking/networkpolicy"
	"k8s.io/kubernetes/pkg/registry/policy/poddisruptionbudget"
	"k8s.io/kubernetes/pkg/registry/rbac/role"
	"k8s.io/kubernetes/pkg/registry/rbac/rolebinding"
	"k8s.io/utils/ptr"
)

// strategies are of the versions that a server serves: the scheme also decodes those that it serves no longer.
var strategies = map[schema.GroupVersionKind]rest.RESTCreateStrategy{
	{Group: "apps", Version: "v1", Kind: "Deployment"}:                       deployment.Strategy,
	{Group: "apps", Version: "v1", Kind: "StatefulSet"}:                      statefulset.Strategy,
	{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"}:   horizontalpodautoscaler.Strategy,
	{Group: "batch", Version: "v1", Kind: "CronJob"}:                         cronjob.Strategy,
	{Group: "batch", Version: "v1", Kind: "Job"}:                             job.Strategy,
	{Version: "v1", Kind: "ConfigMap"}:                                       configmap.Strategy,
	{Version: "v1", Kind: "Namespace"}:                                       namespace.Strategy,
	{Version: "v1", Kind: "Secret"}:                                          secret.Strategy,
	{Version: "v1", Kind: "Service"}:                                         service.Strategy,
	{Version: "v1", Kind: "ServiceAccount"}:                                  serviceaccount.Strategy,
	{Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"}:             ingress.Strategy,
	{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"}:       networkpolicy.Strategy,
	{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"}:            poddisruptionbudget.Strategy,
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"}:        role.Strategy,
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"}: rolebinding.Strategy,
}

// fillInAllocated gives a Service the addresses that the server's allocator would, which its strategy expects.
func fillInAllocated(object runtime.Object) {
	service, ok := object.(*core.Service)
	if !ok || service.Spec.Type == core.ServiceTypeExternalName {
		return
	}
	if service.Spec.ClusterIP == "" {
		service.Spec.ClusterIP = "10.96.0.10"
	}
	service.Spec.ClusterIPs = []string{service.Spec.ClusterIP}
	service.Spec.IPFamilies = []core.IPFamily{core.IPv4Protocol}
	service.Spec.IPFamilyPolicy = ptr.To(core.IPFamilyPolicySingleStack)
}
