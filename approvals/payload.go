package approvals

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/holdpoint/holdpoint/approvals/canon"
	"github.com/holdpoint/holdpoint/approvals/seal"
)

// sealed encrypts for one bytea column.
func (s *Service) sealed(plain, aad []byte) ([]byte, error) {
	box, err := s.sealer.Seal(plain, aad)
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	return box.MarshalBinary()
}

// opened decrypts a bytea column.
func (s *Service) opened(column, aad []byte) ([]byte, error) {
	var box seal.Sealed
	if err := box.UnmarshalBinary(column); err != nil {
		return nil, err
	}
	plain, err := s.sealer.Open(box, aad)
	if errors.Is(err, seal.ErrKMS) {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err) // an outage is waited out, never taken for a changed row
	}
	return plain, err
}

// sealArguments seals salt ‖ arguments for one approval (I23: bound to tenant and approval).
func (s *Service) sealArguments(tenant string, id ID, salt, raw []byte) ([]byte, error) {
	return s.sealed(append(append(make([]byte, 0, len(salt)+len(raw)), salt...), raw...), seal.ArgumentsAAD(tenant, id.String()))
}

// openArguments opens what sealArguments made and passes the bytes through the gate again.
func (s *Service) openArguments(tenant string, id ID, column []byte) (salt []byte, args canon.Arguments, err error) {
	plain, err := s.opened(column, seal.ArgumentsAAD(tenant, id.String()))
	if errors.Is(err, ErrUnavailable) {
		return nil, canon.Arguments{}, err
	}
	if err != nil {
		return nil, canon.Arguments{}, fmt.Errorf("%w: arguments of %s", ErrCorrupt, id)
	}
	if len(plain) < saltBytes {
		return nil, canon.Arguments{}, fmt.Errorf("%w: arguments of %s are short", ErrCorrupt, id)
	}
	return plain[:saltBytes], canon.Read(plain[saltBytes:]), nil
}

// sealResult seals what a tool gave. A result is JSON wherever it is told (the resume message, the claim's answer); what is not
// becomes a string, so that no tool's answer can keep a run from being told.
func (s *Service) sealResult(tenant string, id ID, output []byte) ([]byte, error) {
	output = bytes.ToValidUTF8(output, []byte("\uFFFD"))
	switch {
	case len(output) == 0:
		output = []byte("null")
	case !json.Valid(output):
		text, err := marshal(string(output))
		if err != nil {
			return nil, err
		}
		output = text
	}
	return s.sealed(output, seal.ResultAAD(tenant, id.String()))
}

// verified opens the arguments and proves that they are what was approved: their digest is recomputed from the sealed bytes, the
// proposal's from it, the salt and the row (I1). ok is false on any mismatch.
func (s *Service) verified(f *facts) (args canon.Arguments, ok bool, err error) {
	salt, args, err := s.openArguments(f.req.tenant, f.req.id, f.payload)
	if err != nil {
		return args, false, err
	}
	ok = args.Digest == f.req.argumentsDigest && proposalDigest(salt, f.req, args.Digest) == f.req.digest
	return args, ok, nil
}
