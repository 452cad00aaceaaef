package keyed

// Len counts the locks that exist.
func (k *Locks) Len() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.locks)
}
