package inspect

// ParseSince reads the value of --since.
var ParseSince = parseSince
