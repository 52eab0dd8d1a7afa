package frame

import (
	"fmt"
	"strconv"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/client-go/util/workqueue"
)

// Limiter describes a rate limiter. The kind determines which fields are used.
type Limiter struct {
	Kind string `json:"kind"`
	// In nanoseconds: base and longest delay, fast and slow delay, time per token, or longest wait.
	First  int64 `json:"first"`
	Second int64 `json:"second"`
	// Number of fast attempts, or of tokens.
	Count int       `json:"count"`
	Inner []Limiter `json:"inner"`
}

func (limiter *Limiter) build() workqueue.TypedRateLimiter[string] {
	first, second := time.Duration(limiter.First), time.Duration(limiter.Second)
	inner := make([]workqueue.TypedRateLimiter[string], len(limiter.Inner))
	for i := range limiter.Inner {
		inner[i] = limiter.Inner[i].build()
	}
	switch limiter.Kind {
	case "exponential":
		return workqueue.NewTypedItemExponentialFailureRateLimiter[string](first, second)
	case "fast_slow":
		return workqueue.NewTypedItemFastSlowRateLimiter[string](first, second, limiter.Count)
	case "bucket":
		return &workqueue.TypedBucketRateLimiter[string]{Limiter: rate.NewLimiter(rate.Every(first), limiter.Count)}
	case "max_of":
		return workqueue.NewTypedMaxOfRateLimiter(inner...)
	case "max_wait":
		return workqueue.NewTypedWithMaxWaitRateLimiter(inner[0], first)
	case "controller_default":
		return workqueue.DefaultTypedControllerRateLimiter[string]()
	case "item_based_default":
		return workqueue.DefaultTypedItemBasedRateLimiter[string]()
	default:
		panic(fmt.Sprintf("unknown limiter %q", limiter.Kind))
	}
}

// RateLimiter runs operations on a rate limiter of client-go's work queues.
func RateLimiter(sequence *Sequence) func(*Operation) Answer {
	limiter := sequence.Limiter.build()
	return func(operation *Operation) Answer {
		switch operation.Verb {
		case "when":
			var delay time.Duration
			for range max(operation.Number, 1) {
				delay = limiter.When(operation.Text)
			}
			return strconv.FormatInt(int64(delay), 10)
		case "forget":
			limiter.Forget(operation.Text)
			return "ok"
		case "requeues":
			return strconv.Itoa(limiter.NumRequeues(operation.Text))
		case "pass":
			time.Sleep(time.Duration(operation.Number))
			return "ok"
		default:
			return Unknown(operation)
		}
	}
}
