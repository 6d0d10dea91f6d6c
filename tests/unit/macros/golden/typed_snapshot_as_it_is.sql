`shop`.`orders`
