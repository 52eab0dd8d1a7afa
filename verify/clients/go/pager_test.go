// Tests of client-go's pager, of limit and continue, and of expired continue tokens.

package clients

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"
)

// paged is a server with the configmaps p0 to p9, at revisions 2 to 11.
type paged struct {
	*server
	configmaps
}

func pagedScene(t *testing.T) paged {
	t.Helper()
	t.Parallel()
	s := start(t)
	write := s.writer(s.client())
	for n := range 10 {
		write.create(fmt.Sprintf("p%d", n))
	}
	return paged{s, write}
}

// by returns a pager with pages of three. It calls between before each page except the first.
func (p paged) by(between func()) *pager.ListPager {
	it := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		if options.Continue != "" && between != nil {
			between()
		}
		return p.configmaps.client.CoreV1().ConfigMaps("default").List(ctx, options)
	})
	it.PageSize = 3
	it.PageBufferSize = 0
	return it
}

func names(t *testing.T, list runtime.Object) string {
	t.Helper()
	var names []string
	must(t, meta.EachListItem(list, func(item runtime.Object) error {
		object, err := meta.Accessor(item)
		if err == nil {
			names = append(names, object.GetName())
		}
		return err
	}))
	return fmt.Sprint(names)
}

func TestPagesHaveOneRevisionDespiteWritesBetweenThem(t *testing.T) {
	p := pagedScene(t)
	writes := 0
	list, wasPaged, err := p.by(func() {
		p.configmaps.delete(fmt.Sprintf("p%d", 9-writes))
		p.create(fmt.Sprintf("p0-%d", writes))
		writes++
	}).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	equal(t, "paged", wasPaged, true)
	equal(t, "names", names(t, list), "[p0 p1 p2 p3 p4 p5 p6 p7 p8 p9]")
	of, err := meta.ListAccessor(list)
	must(t, err)
	equal(t, "revision", p.rank(of.GetResourceVersion()), "11")
	equal(t, "requests", p.requests("configmaps"), []string{"list", "list continued", "list continued", "list continued"})
}

func TestPagerListsAgainWhenItsContinueTokenHasExpired(t *testing.T) {
	p := pagedScene(t)
	expired := false
	list, _, err := p.by(func() {
		if !expired {
			expired = true
			p.configmaps.delete("p9")
			p.inject("expire history")
		}
	}).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	equal(t, "names", names(t, list), "[p0 p1 p2 p3 p4 p5 p6 p7 p8]")
	equal(t, "requests", p.requests("configmaps"), []string{"list", "list continued -> 410", "list"})
}

func TestPagerWithoutFallbackReportsAnExpiredContinueToken(t *testing.T) {
	p := pagedScene(t)
	it := p.by(func() {
		p.other("n")
		p.inject("expire history")
	})
	it.FullListIfExpired = false
	var told []string
	err := it.EachListItem(t.Context(), metav1.ListOptions{}, func(item runtime.Object) error {
		told = append(told, item.(*corev1.ConfigMap).Name)
		return nil
	})
	equal(t, "expired", apierrors.IsResourceExpired(err), true)
	equal(t, "names", told, "[p0 p1 p2]")
}

func (p paged) list(options metav1.ListOptions) (*corev1.ConfigMapList, error) {
	return p.configmaps.client.CoreV1().ConfigMaps("default").List(p.server.t.Context(), options)
}

func TestPagesHaveARemainingCount(t *testing.T) {
	p := pagedScene(t)
	first, err := p.list(metav1.ListOptions{Limit: 4})
	must(t, err)
	equal(t, "remaining", *first.RemainingItemCount, 6)
	second, err := p.list(metav1.ListOptions{Limit: 4, Continue: first.Continue})
	must(t, err)
	equal(t, "remaining", *second.RemainingItemCount, 2)
	equal(t, "revision", second.ResourceVersion, first.ResourceVersion)
	selected, err := p.list(metav1.ListOptions{Limit: 4, FieldSelector: "metadata.namespace=default"})
	must(t, err)
	equal(t, "remaining of a selection", selected.RemainingItemCount, (*int64)(nil))
}

func TestExpiredPagesHaveANewContinueToken(t *testing.T) {
	p := pagedScene(t)
	first, err := p.list(metav1.ListOptions{Limit: 8})
	must(t, err)
	p.configmaps.delete("p8")
	p.inject("expire history")
	_, err = p.list(metav1.ListOptions{Limit: 4, Continue: first.Continue})
	var status *apierrors.StatusError
	equal(t, "a status", errors.As(err, &status), true)
	equal(t, "code and reason", fmt.Sprint(status.ErrStatus.Code, " ", status.ErrStatus.Reason), "410 Expired")
	rest, err := p.list(metav1.ListOptions{Limit: 4, Continue: status.ErrStatus.Continue})
	must(t, err)
	equal(t, "names", names(t, rest), "[p9]")
	equal(t, "revision", rest.ResourceVersion, "12")
	equal(t, "continue", rest.Continue, "")
}

func TestListsAtARevisionHaveItsState(t *testing.T) {
	p := pagedScene(t)
	p.configmaps.delete("p3")
	exactly, err := p.list(metav1.ListOptions{ResourceVersion: p.at(4), ResourceVersionMatch: metav1.ResourceVersionMatchExact})
	must(t, err)
	equal(t, "names at 4", names(t, exactly), "[p0 p1 p2]")
	atLeast, err := p.list(metav1.ListOptions{ResourceVersion: p.at(4), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan})
	must(t, err)
	equal(t, "names since 4", names(t, atLeast), "[p0 p1 p2 p4 p5 p6 p7 p8 p9]")
	_, err = p.list(metav1.ListOptions{ResourceVersion: p.at(4), ResourceVersionMatch: "Roughly"})
	equal(t, "invalid", apierrors.IsInvalid(err), true)
	// Without retries, because client-go would retry after each response with a Retry-After.
	configmaps := p.configmaps.client.CoreV1().RESTClient().Get().Resource("configmaps").MaxRetries(0)
	err = configmaps.Param("resourceVersion", "1000000000").Do(t.Context()).Error()
	equal(t, "a time-out", apierrors.IsTimeout(err), true)
	equal(t, "cause", apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge), true)
}
