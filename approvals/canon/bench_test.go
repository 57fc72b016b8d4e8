package canon

import (
	"fmt"
	"strings"
	"testing"
)

// sample is arguments of about n bytes: records with text, money and flags.
func sample(n int) []byte {
	var b strings.Builder
	b.WriteString(`{"rows":[`)
	for i := 0; b.Len() < n-40; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"order":"ORD-%06d","amount":%d.%02d,"currency":"USD","note":"caf\u00e9 no. %d, \"as agreed\"","paid":true}`, i, i%997, i%100, i)
	}
	b.WriteString(`]}`)
	return []byte(b.String())
}

func BenchmarkRead(b *testing.B) {
	for name, size := range map[string]int{"6KiB": 6 << 10, "1MiB": 1 << 20} {
		raw := sample(size)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				if a := Read(raw); !a.Readable() {
					b.Fatal(a.Unreadable)
				}
			}
		})
		b.Run(name+"/gate", func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			text := string(raw)
			for b.Loop() {
				if _, reason := parseObject(text, false); reason != "" {
					b.Fatal(reason)
				}
			}
		})
	}
}
