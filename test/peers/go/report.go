package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

const checkTime = 20 * time.Second

// report prints one JSON line for a check: {"check", "ok", "detail"}.
func report(check string, ok bool, detail string) {
	if len(detail) > 500 {
		detail = strings.ToValidUTF8(detail[:500], "")
	}
	line, _ := json.Marshal(map[string]any{"check": check, "ok": ok, "detail": detail})
	fmt.Fprintf(os.Stdout, "%s\n", line)
}

// run runs one check within its time.
func run(check string, body func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), checkTime)
	defer cancel()
	if err := body(ctx); err != nil {
		report(check, false, err.Error())
		return
	}
	report(check, true, "")
}

func expect(value, wanted any) error {
	if fmt.Sprint(value) == fmt.Sprint(wanted) {
		return nil
	}
	return fmt.Errorf("expected %v, got %.300s", wanted, fmt.Sprint(value))
}

func expectIn(wanted, text string) error {
	if strings.Contains(text, wanted) {
		return nil
	}
	return fmt.Errorf("expected %q in %.300q", wanted, text)
}

func until(ctx context.Context, condition func() bool) error {
	for !condition() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("the notification did not come in %s", checkTime)
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}
