package watchdog

// Busy returns why a timer should not write to a run now, or "".
var Busy = busy
