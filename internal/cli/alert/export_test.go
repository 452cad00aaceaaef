package alert

// MessageText is what a message says.
var MessageText = messageText
