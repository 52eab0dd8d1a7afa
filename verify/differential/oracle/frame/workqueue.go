package frame

import (
	"fmt"
	"sort"
	"strconv"
	"sync"
	"testing/synctest"
	"time"

	"k8s.io/client-go/util/workqueue"
)

// turn is the time between two operations. It prevents two delays from ending at the same time, because their
// order would be undefined.
const turn = time.Microsecond

// workers is a queue with the goroutines that wait for it. It reports which item was received and when, and
// not which worker received it.
type workers struct {
	queue workqueue.TypedRateLimitingInterface[string]
	// The inner queue, which is shut down again at the end, because the outer queue shuts down only once.
	inner workqueue.TypedInterface[string]
	begin time.Time

	lock sync.Mutex
	// The events of workers and drains since the last answer.
	events []event
	// The items that workers hold.
	held map[string]bool
}

type event struct {
	millisecond int64
	text        string
}

// Workqueue runs a sequence on the rate limiting queue, with its two inner layers.
func Workqueue(sequence *Sequence) []Answer {
	inner := workqueue.NewTyped[string]()
	delaying := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[string]{Queue: inner})
	config := workqueue.TypedRateLimitingQueueConfig[string]{DelayingQueue: delaying}
	q := &workers{
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(sequence.Limiter.build(), config),
		inner: inner,
		begin: time.Now(),
		held:  map[string]bool{},
	}
	synctest.Wait()
	answers := make([]Answer, len(sequence.Operations))
	for i := range sequence.Operations {
		time.Sleep(turn)
		answer := q.step(&sequence.Operations[i])
		synctest.Wait()
		answers[i] = answer + q.take()
	}
	// Ends the waiting workers, because no goroutine may be left in the bubble.
	q.queue.ShutDown()
	q.inner.ShutDown()
	for {
		synctest.Wait()
		item, ended := q.queue.Get()
		if ended {
			break
		}
		q.queue.Done(item)
	}
	return answers
}

func (q *workers) step(operation *Operation) string {
	switch operation.Verb {
	case "add":
		q.queue.Add(operation.Text)
	case "add_after":
		q.queue.AddAfter(operation.Text, time.Duration(operation.Number)*time.Millisecond)
	case "add_rate_limited":
		q.queue.AddRateLimited(operation.Text)
	case "forget":
		q.queue.Forget(operation.Text)
	case "requeues":
		return strconv.Itoa(q.queue.NumRequeues(operation.Text))
	case "len":
		return strconv.Itoa(q.queue.Len())
	case "shutting_down":
		return ShowBool(q.queue.ShuttingDown())
	case "shut_down":
		q.queue.ShutDown()
	case "drain":
		go func() {
			q.queue.ShutDownWithDrain()
			q.tell("drained")
		}()
	case "get":
		go q.get()
	case "done", "done_forget", "retry", "retry_after":
		return q.finish(operation)
	case "pass":
		time.Sleep(time.Duration(operation.Number) * time.Millisecond)
	default:
		Unknown(operation)
	}
	return ""
}

func (q *workers) get() {
	item, ended := q.queue.Get()
	if ended {
		q.tell("end")
		return
	}
	q.lock.Lock()
	q.held[item] = true
	q.lock.Unlock()
	q.tell(item)
}

func (q *workers) finish(operation *Operation) string {
	item := operation.Text
	q.lock.Lock()
	held := q.held[item]
	delete(q.held, item)
	q.lock.Unlock()
	if !held {
		return "not held"
	}
	switch operation.Verb {
	case "done_forget":
		q.queue.Forget(item)
	case "retry":
		q.queue.AddRateLimited(item)
	case "retry_after":
		q.queue.AddAfter(item, time.Duration(operation.Number)*time.Millisecond)
	}
	q.queue.Done(item)
	return ""
}

func (q *workers) tell(text string) {
	q.lock.Lock()
	defer q.lock.Unlock()
	// Rounded up to whole milliseconds, the resolution of the Rust side's timers.
	millisecond := (time.Since(q.begin) + time.Millisecond - 1) / time.Millisecond
	q.events = append(q.events, event{int64(millisecond), text})
}

// take formats the events since the last call. Events at the same time are sorted, because their order is
// undefined.
func (q *workers) take() string {
	q.lock.Lock()
	defer q.lock.Unlock()
	events := q.events
	q.events = nil
	sort.Slice(events, func(i, j int) bool {
		if events[i].millisecond != events[j].millisecond {
			return events[i].millisecond < events[j].millisecond
		}
		return events[i].text < events[j].text
	})
	var shown string
	for _, event := range events {
		shown += fmt.Sprintf("[%d ms: %s]", event.millisecond, event.text)
	}
	return shown
}
