package watchdog

// Busy returns why a timer should not write to a run now.
var Busy = busy
