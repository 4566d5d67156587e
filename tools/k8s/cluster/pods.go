package main

import (
	"context"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

// follow reports the state of each pod as a kubelet would.
func follow(ctx context.Context, client kubernetes.Interface, pods cache.SharedIndexInformer) error {
	started := 0
	handle := func(object any) {
		pod, ok := object.(*corev1.Pod)
		if !ok || pod.Spec.NodeName == "" {
			return
		}
		var err error
		switch {
		case pod.DeletionTimestamp != nil:
			now := metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0),
				Preconditions: &metav1.Preconditions{UID: &pod.UID}}
			err = client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, now)
		case pod.Status.Phase == corev1.PodPending:
			started++
			_, err = client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, runningPod(pod, started), metav1.UpdateOptions{})
		}
		// an event that follows repeats what came too late
		if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	_, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: handle, UpdateFunc: func(_, object any) { handle(object) }})
	return err
}

func runningPod(given *corev1.Pod, number int) *corev1.Pod {
	pod := given.DeepCopy()
	now := metav1.Now()
	isJob := pod.Spec.RestartPolicy != corev1.RestartPolicyAlways
	state := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}
	pod.Status.Phase = corev1.PodRunning
	if isJob {
		pod.Status.Phase = corev1.PodSucceeded
		state = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed",
			StartedAt: now, FinishedAt: now}}
	}
	pod.Status.StartTime = &now
	pod.Status.PodIP = fmt.Sprintf("10.244.%d.%d", number/250, number%250+1)
	pod.Status.PodIPs = []corev1.PodIP{{IP: pod.Status.PodIP}}
	pod.Status.ContainerStatuses = nil
	for _, container := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: container.Name, Image: container.Image, Ready: !isJob, Started: ptr.To(!isJob), State: state})
	}
	pod.Status.Conditions = nil
	for _, condition := range []corev1.PodConditionType{
		corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		pod.Status.Conditions = append(pod.Status.Conditions,
			corev1.PodCondition{Type: condition, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	return pod
}
