// SPDX-FileCopyrightText: Contributors to the virtops.kubevirt project
// SPDX-License-Identifier: GPL-3.0-or-later

// Oracle answers, by running the real kube-scheduler, where pods of given clusters fit.
//
// It reads cases as JSON lines and writes one JSON line for each, in the same order:
//
//	oracle store    case -> the same case as an API server would have stored it, or {"error": ...}
//	oracle judge    stored case -> {"answers": [...]}, one for each pod asked about, or {"error": ...}
//	oracle time     stored case -> {"seconds": ...}, what the scheduler takes for a pod asked about, or {"error": ...}
//
// See case.go for the shapes.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"k8s.io/klog/v2"
)

// Upstream logs every odd thing in a case, and the cases are made of odd things.
var quiet = klog.New(klog.LogSink(nil))

func main() {
	klog.SetLogger(quiet)
	work := map[string]func(line []byte) (any, error){"store": storeLine, "judge": judgeLine, "time": timeLine}
	if len(os.Args) != 2 || work[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: oracle store|judge|time < cases > answers")
		os.Exit(2)
	}
	if err := serve(work[os.Args[1]]); err != nil {
		fmt.Fprintf(os.Stderr, "oracle: %v\n", err)
		os.Exit(1)
	}
}

// serve works on as many lines at once as there are processors and keeps their order.
func serve(work func([]byte) (any, error)) error {
	ordered := make(chan chan []byte, runtime.GOMAXPROCS(0))
	var readError error
	go func() {
		defer close(ordered)
		in := bufio.NewReaderSize(os.Stdin, 1<<20)
		for {
			line, err := in.ReadBytes('\n')
			if len(line) > 1 {
				answer := make(chan []byte, 1)
				ordered <- answer
				go func() { answer <- answerLine(work, line) }()
			}
			if err != nil {
				if !errors.Is(err, io.EOF) {
					readError = fmt.Errorf("reading a case: %w", err)
				}
				return
			}
		}
	}()
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	for answer := range ordered {
		if _, err := out.Write(append(<-answer, '\n')); err != nil {
			return fmt.Errorf("writing an answer: %w", err)
		}
		// Whoever asks one case at a time waits for its line.
		if len(ordered) == 0 {
			if err := out.Flush(); err != nil {
				return fmt.Errorf("writing an answer: %w", err)
			}
		}
	}
	return readError
}

func answerLine(work func([]byte) (any, error), line []byte) []byte {
	answer, err := work(line)
	if err == nil {
		var text []byte
		if text, err = json.Marshal(answer); err == nil {
			return text
		}
	}
	text, _ := json.Marshal(map[string]string{"error": err.Error()})
	return text
}
