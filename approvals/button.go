package approvals

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Button is what a button's opaque value says: which approval, which digest the person saw, and the row's version, which only
// orders repaints. The MAC's key is the card's own, and the channel is under the MAC; the message is compared with the stored card.
type Button struct {
	ID           ID
	DigestPrefix string
	Version      int64
	mac          []byte
}

var errButton = errors.New("not a button of Holdpoint")

const buttonMACBytes = 12 // 96 bits; an overflow option holds 75 characters

// EncodeButton makes the value for a card of the given channel. key is the card's.
func EncodeButton(key []byte, channel string, id ID, digest string, version int64) string {
	b := Button{ID: id, DigestPrefix: shortDigest(digest), Version: version}
	return b.payload() + "." + base64.RawURLEncoding.EncodeToString(b.sum(key, channel))
}

// ParseButton reads a value without trusting it: Decide verifies the MAC against the stored card.
func ParseButton(value string) (Button, error) {
	parts := strings.Split(value, ".")
	if len(parts) != 5 || parts[0] != "hp1" || len(value) > 256 {
		return Button{}, errButton
	}
	id, err := ParseID(parts[1])
	if err != nil {
		return Button{}, errButton
	}
	version, err := strconv.ParseInt(parts[3], 10, 64)
	if err != nil || version < 1 || len(parts[2]) == 0 || len(parts[2]) > 12 || strconv.FormatInt(version, 10) != parts[3] {
		return Button{}, errButton
	}
	mac, err := base64.RawURLEncoding.Strict().DecodeString(parts[4])
	if err != nil || len(mac) != buttonMACBytes {
		return Button{}, errButton
	}
	return Button{ID: id, DigestPrefix: parts[2], Version: version, mac: mac}, nil
}

func (b Button) payload() string {
	return fmt.Sprintf("hp1.%s.%s.%d", b.ID, b.DigestPrefix, b.Version)
}

func (b Button) sum(key []byte, channel string) []byte {
	m := hmac.New(sha256.New, key)
	m.Write([]byte(b.payload() + "\x00" + channel))
	return m.Sum(nil)[:buttonMACBytes]
}

// bound holds a press to the stored card, whatever it leads to (a decision, a form, Details): MAC, channel and message.
func (b Button) bound(key []byte, storedChannel, storedMessage, channel, message string) DenialKind {
	switch {
	case !b.genuine(key, channel) || channel != storedChannel:
		return DenyTampered
	case storedMessage == "":
		return DenyNotYet
	case message != storedMessage:
		return DenyTampered
	}
	return ""
}

// genuine says whether the value was made for this card.
func (b Button) genuine(key []byte, channel string) bool {
	return len(key) >= 16 && hmac.Equal(b.mac, b.sum(key, channel))
}
