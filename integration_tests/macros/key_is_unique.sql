{% test key_is_unique(model, columns) %}
  select {{ columns | join(', ') }}, count(*) as n
  from {{ model }}
  group by {{ columns | join(', ') }}
  having count(*) > 1
{% endtest %}
