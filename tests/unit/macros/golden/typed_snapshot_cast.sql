(select
      `id` as `id`,
      case
      when DBT_INTERNAL_DEST.`wider` is not null and (try_cast(DBT_INTERNAL_DEST.`wider` as bigint) is null)
      then cast(raise_error(concat('`wider` has the value ''', cast(DBT_INTERNAL_DEST.`wider` as string), ''', which is no bigint. It\'s up to you.')) as bigint)
      else try_cast(DBT_INTERNAL_DEST.`wider` as bigint)
    end as `wider`,
      transform(DBT_INTERNAL_DEST.`nested`, element_1 -> case
      when element_1 is not null and (try_cast(element_1 as bigint) is null)
      then cast(raise_error(concat('`nested`.element has the value ''', cast(element_1 as string), ''', which is no bigint. It\'s up to you.')) as bigint)
      else try_cast(element_1 as bigint)
    end) as `nested`,
      `missing` as `missing`
    from `shop`.`orders` as DBT_INTERNAL_DEST)
