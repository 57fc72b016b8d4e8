// Package seal encrypts what must not lie around in plain sight: run states,
// arguments, results and messages. Each sealed value has a data key of its own
// (AES-256-GCM), which is wrapped by a key-encrypting key from a Tink keyset or
// a KMS. Crypto is Tink's.
//
// What holds:
//
//   - A sealed value opens only under the binding it was sealed with: kind,
//     tenant and row. Copied to another row, another tenant or another kind of
//     column, it doesn't (invariant I23). The binding covers the wrapped key
//     and the content alike.
//   - Opening fails with [ErrSealed], whether the key, the binding or a bit is
//     wrong; with [ErrKMS] when a KMS gave no answer to go by. No error carries
//     plaintext, ciphertext, keys or a KMS's words.
//   - Sealing the same value twice gives unrelated bytes.
//   - Bindings are unambiguous: fields are length-prefixed and domain-tagged, so
//     ("ab","c") and ("a","bc") differ, and no kind's binding equals another's.
//
// The package also has the object store for values too large for a row
// ([Store]); it only ever sees sealed bytes.
package seal
