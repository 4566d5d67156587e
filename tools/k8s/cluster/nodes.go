package main

import (
	"context"
	"fmt"
	"os/signal"
	"syscall"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
)

const (
	nodeCount   = 3
	leasesIn    = "kube-node-lease"
	leaseFor    = 40
	renewEvery  = 8 * time.Second
	resyncEvery = 10 * time.Second
)

// runNodes stands for the kubelets of three nodes in three zones: every pod that is bound to one is running and
// ready at once, and every job has succeeded. Nothing is run.
func runNodes(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("usage: cluster nodes KUBECONFIG")
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	config, err := clientcmd.BuildConfigFromFlags("", args[0])
	if err != nil {
		return err
	}
	config.QPS, config.Burst = 200, 400
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	for i := range nodeCount {
		if err := register(ctx, client, i); err != nil {
			return err
		}
	}
	factory := informers.NewSharedInformerFactory(client, resyncEvery)
	pods := factory.Core().V1().Pods()
	if err := follow(ctx, client, pods.Informer()); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	if err := serveMetrics(ctx, client, pods.Lister()); err != nil {
		return err
	}
	renewLeases(ctx, client)
	return nil
}

func nodeName(i int) string { return fmt.Sprintf("node-%d", i) }

func register(ctx context.Context, client kubernetes.Interface, i int) error {
	name := nodeName(i)
	room := corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("16"),
		corev1.ResourceMemory:           resource.MustParse("64Gi"),
		corev1.ResourcePods:             resource.MustParse("110"),
		corev1.ResourceEphemeralStorage: resource.MustParse("100Gi"),
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		"kubernetes.io/hostname": name, "kubernetes.io/os": "linux",
		"topology.kubernetes.io/zone": fmt.Sprintf("zone-%d", i)}}}
	node, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	now := metav1.Now()
	node.Status.Capacity, node.Status.Allocatable = room, room
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "Fake",
		LastHeartbeatTime: now, LastTransitionTime: now}}
	if _, err := client.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{}); err != nil {
		return err
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: leasesIn},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To(name), LeaseDurationSeconds: ptr.To[int32](leaseFor),
			RenewTime: &metav1.MicroTime{Time: now.Time}}}
	_, err = client.CoordinationV1().Leases(leasesIn).Create(ctx, lease, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// renewLeases tells the controllers that the nodes are alive, until the end.
func renewLeases(ctx context.Context, client kubernetes.Interface) {
	ticks := time.NewTicker(renewEvery)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		for i := range nodeCount {
			lease, err := client.CoordinationV1().Leases(leasesIn).Get(ctx, nodeName(i), metav1.GetOptions{})
			if err != nil {
				continue
			}
			lease.Spec.RenewTime = &metav1.MicroTime{Time: time.Now()}
			// the next tick repeats what fails
			_, _ = client.CoordinationV1().Leases(leasesIn).Update(ctx, lease, metav1.UpdateOptions{})
		}
	}
}
