package config

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

var (
	errNumber = errors.New("is not a whole number")
	errTruth  = errors.New("is neither true nor false")
	errList   = errors.New("is not a list of numbers")
)

// set reads text into the key's field. It checks only the form: bounds are checked when all sources are merged, because
// some depend on other keys.
func (k Key) set(c *Config, text string) (err error) {
	switch p := k.field(c).(type) {
	case *string:
		*p = text
	case *Auth:
		*p = Auth(text)
	case *int:
		if *p, err = strconv.Atoi(text); err != nil {
			return errNumber
		}
	case *bool:
		if text != "true" && text != "false" {
			return errTruth
		}
		*p = text == "true"
	case *time.Duration:
		*p, err = ParseDuration(text)
	case *Size:
		*p, err = ParseSize(text)
	case *Busy:
		*p, err = parseBusy(text)
	case *[]string:
		*p = splitList(text)
	case *[]int:
		*p, err = numbers(text, strconv.Atoi)
	case *[]float64:
		*p, err = numbers(text, func(s string) (float64, error) { return strconv.ParseFloat(s, 64) })
	default:
		panic(fmt.Sprintf("config: key %s has a field of the unknown kind %T", k.Name, p))
	}
	return err
}

// value writes the key's field as text that set can read back.
func (k Key) value(c *Config) string {
	switch p := k.field(c).(type) {
	case *time.Duration:
		return FormatDuration(*p)
	case *[]string:
		return strings.Join(*p, ",")
	case *[]int, *[]float64:
		list := reflect.ValueOf(p).Elem()
		parts := make([]string, list.Len())
		for i := range parts {
			parts[i] = fmt.Sprint(list.Index(i))
		}
		return strings.Join(parts, ",")
	default:
		return fmt.Sprint(reflect.ValueOf(p).Elem())
	}
}

// zero reports whether the key's field is zero in c. An empty list is not.
func (k Key) zero(c *Config) bool { return reflect.ValueOf(k.field(c)).Elem().IsZero() }

// copy copies the key's field.
func (k Key) copy(to, from *Config) {
	reflect.ValueOf(k.field(to)).Elem().Set(reflect.ValueOf(k.field(from)).Elem())
}

// splitList reads a list separated by commas. Empty text is an empty list.
func splitList(text string) []string {
	list := []string{}
	if strings.TrimSpace(text) == "" {
		return list
	}
	for part := range strings.SplitSeq(text, ",") {
		list = append(list, strings.TrimSpace(part))
	}
	return list
}

func numbers[T any](text string, parse func(string) (T, error)) ([]T, error) {
	list := []T{}
	for _, part := range splitList(text) {
		n, err := parse(part)
		if err != nil {
			return nil, errList
		}
		list = append(list, n)
	}
	return list, nil
}

// amount returns a number or a duration for comparison.
func (k Key) amount(c *Config) int64 { return reflect.ValueOf(k.field(c)).Elem().Int() }
