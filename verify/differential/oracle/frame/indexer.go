package frame

import (
	"strings"

	"k8s.io/client-go/tools/cache"
)

// revisioned is the interface that stores have since 0.36.
type revisioned interface {
	Bookmark(revision string)
	LastStoreSyncResourceVersion() string
}

// Transact applies many changes in one batch; nil if the version does not support it.
var Transact func(indexer cache.Indexer, operations []Operation) error

// Indexer runs operations on the store of informers.
func Indexer(sequence *Sequence) func(*Operation) Answer {
	indexer := cache.NewIndexer(cache.DeletionHandlingMetaNamespaceKeyFunc, cache.Indexers{
		cache.NamespaceIndex: cache.MetaNamespaceIndexFunc,
		"app":                indexFunc("app"),
	})
	return func(operation *Operation) Answer { return indexerWrite(indexer, operation) }
}

// indexFunc returns an index function that reads the values of an object for this index.
func indexFunc(name string) cache.IndexFunc {
	return func(object any) ([]string, error) {
		values, found := object.(*Object).Values[name]
		if !found {
			return nil, nil
		}
		return strings.Split(values, ","), nil
	}
}

func indexerWrite(indexer cache.Indexer, operation *Operation) Answer {
	switch operation.Verb {
	case "add":
		return ShowError(indexer.Add(operation.Object()))
	case "update":
		return ShowError(indexer.Update(operation.Object()))
	case "delete":
		return ShowError(indexer.Delete(operation.Object()))
	case "delete_missed":
		return ShowError(indexer.Delete(operation.Tombstone()))
	case "delete_key":
		return ShowError(indexer.Delete(cache.ExplicitKey(operation.Text)))
	case "replace":
		return ShowError(indexer.Replace(Objects(operation.Things), operation.Text))
	case "resync":
		return ShowError(indexer.Resync())
	case "add_indexers":
		return ShowError(indexer.AddIndexers(cache.Indexers{operation.Index: indexFunc(operation.Index)}))
	case "batch":
		if Transact == nil {
			return nil
		}
		return ShowError(Transact(indexer, operation.Batch))
	case "bookmark":
		if store, ok := indexer.(revisioned); ok {
			store.Bookmark(operation.Text)
			return "ok"
		}
		return nil
	case "revision":
		if store, ok := indexer.(revisioned); ok {
			return store.LastStoreSyncResourceVersion()
		}
		return nil
	default:
		return indexerRead(indexer, operation)
	}
}

func indexerRead(indexer cache.Indexer, operation *Operation) Answer {
	switch operation.Verb {
	case "get":
		object, exists, err := indexer.GetByKey(operation.Text)
		if err != nil || !exists {
			return "nothing"
		}
		return ShowObject(object)
	case "get_object":
		object, exists, err := indexer.Get(operation.Object())
		if err != nil || !exists {
			return "nothing"
		}
		return ShowObject(object)
	case "list":
		return showAll(indexer.List(), nil)
	case "list_keys":
		return Set(indexer.ListKeys())
	case "index":
		return showAll(indexer.Index(operation.Index, operation.Object()))
	case "by_index":
		return showAll(indexer.ByIndex(operation.Index, operation.Text))
	case "index_keys":
		keys, err := indexer.IndexKeys(operation.Index, operation.Text)
		if err != nil {
			return "error"
		}
		return Set(keys)
	case "index_values":
		return Set(indexer.ListIndexFuncValues(operation.Index))
	case "indexers":
		names := Set{}
		for name := range indexer.GetIndexers() {
			names = append(names, name)
		}
		return names
	default:
		return Unknown(operation)
	}
}

func showAll(objects []any, err error) Answer {
	if err != nil {
		return "error"
	}
	set := Set{}
	for _, object := range objects {
		set = append(set, ShowObject(object))
	}
	return set
}
