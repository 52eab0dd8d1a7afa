package v37

import (
	"github.com/kube-informer/kube-informer/verify/differential/oracle/frame"
	"k8s.io/client-go/tools/cache"
)

// transact applies many changes to a store in one batch, as an informer does.
func transact(indexer cache.Indexer, operations []frame.Operation) error {
	transactions := make([]cache.Transaction, len(operations))
	for i := range operations {
		operation := &operations[i]
		transaction := cache.Transaction{Object: operation.Object()}
		switch operation.Verb {
		case "add":
			transaction.Type = cache.TransactionTypeAdd
		case "update":
			transaction.Type = cache.TransactionTypeUpdate
		case "delete":
			transaction.Type = cache.TransactionTypeDelete
		case "delete_missed":
			transaction.Type, transaction.Object = cache.TransactionTypeDelete, operation.Tombstone()
		default:
			frame.Unknown(operation)
		}
		transactions[i] = transaction
	}
	if err := indexer.(cache.TransactionStore).Transaction(transactions...); err != nil {
		return err
	}
	return nil
}
