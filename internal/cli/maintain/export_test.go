package maintain

// Plist returns the launchd agent of a program and its environment.
var Plist = plist
