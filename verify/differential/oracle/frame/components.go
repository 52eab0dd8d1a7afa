package frame

// Components returns the components that every version supports.
func Components() map[string]Component {
	return map[string]Component{
		"delta_fifo":   Each(DeltaFIFO),
		"indexer":      Each(Indexer),
		"workqueue":    Workqueue,
		"informer":     Informer,
		"requests":     Requests,
		"rate_limiter": Each(RateLimiter),
	}
}
