package main

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	psa "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// checkPodSecurity holds the pods against what the labels of their namespace demand. The API server only warns of a
// Deployment that violates it, and then its pods never come.
func checkPodSecurity(documents []document, found *faults) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		panic(err)
	}
	labels := map[string]map[string]string{}
	for _, each := range documents {
		if namespace, ok := each.object.(*corev1.Namespace); ok {
			labels[namespace.Name] = namespace.Labels
		}
	}
	privileged := psa.Policy{Enforce: psa.LevelVersion{Level: psa.LevelPrivileged, Version: psa.LatestVersion()}}
	for _, each := range documents {
		namespace, pod := podOf(each)
		if pod == nil {
			continue
		}
		demanded, errs := psa.PolicyToEvaluate(labels[namespace], privileged)
		if len(errs) > 0 {
			found.add("Namespace "+namespace, errs.ToAggregate())
		}
		if demanded.Enforce.Level != psa.LevelRestricted {
			found.add(each.where, "its namespace does not demand restricted pods")
		}
		result := policy.AggregateCheckResults(evaluator.EvaluatePod(demanded.Enforce, &pod.ObjectMeta, &pod.Spec))
		if !result.Allowed {
			found.add(each.where, fmt.Sprintf("violates PodSecurity %s: %s", demanded.Enforce, result.ForbiddenDetail()))
		}
	}
}

func podOf(given document) (namespace string, pod *corev1.PodTemplateSpec) {
	switch object := given.object.(type) {
	case *appsv1.Deployment:
		return object.Namespace, &object.Spec.Template
	case *appsv1.StatefulSet:
		return object.Namespace, &object.Spec.Template
	case *batchv1.Job:
		return object.Namespace, &object.Spec.Template
	case *batchv1.CronJob:
		return object.Namespace, &object.Spec.JobTemplate.Spec.Template
	}
	return "", nil
}
